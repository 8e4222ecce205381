//! The functions of MPI that are counted.

macro_rules! operations {
    ($($name:ident $group:ident),* $(,)?) => {
        /// A function of MPI, without `MPI_`. `native/mpi/functions.h` has them in the same order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum MpiOperation { $($name),* }

        impl MpiOperation {
            /// All of them, in the order of the file.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The group.
            pub fn group(self) -> MpiGroup {
                match self { $(Self::$name => MpiGroup::$group),* }
            }

            /// The name as MPI writes it, without `MPI_`: `Reduce_scatter`.
            pub fn name(self) -> String {
                let camel = match self { $(Self::$name => stringify!($name)),* };
                let mut name = String::new();
                for (at, letter) in camel.char_indices() {
                    if at > 0 && letter.is_ascii_uppercase() {
                        name.push('_');
                    }
                    name.push(if at > 0 { letter.to_ascii_lowercase() } else { letter });
                }
                name
            }
        }
    };
}

/// What a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiGroup {
    /// Sends a message, and waits until its buffer is free.
    Send,
    /// Begins to send or to receive.
    Start,
    /// Receives a message.
    Receive,
    /// Waits for messages.
    Wait,
    /// All ranks of a communicator call it.
    Collective,
}

operations! {
    Send Send, Bsend Send, Ssend Send, Rsend Send, Isend Start, Ibsend Start, Issend Start, Irsend Start,
    Recv Receive, Irecv Start, Sendrecv Receive, SendrecvReplace Receive,
    Wait Wait, Waitall Wait, Waitany Wait, Waitsome Wait, Probe Wait,
    Barrier Collective, Bcast Collective, Reduce Collective, Allreduce Collective, ReduceScatter Collective,
    ReduceScatterBlock Collective, Scan Collective, Exscan Collective, Gather Collective, Gatherv Collective,
    Scatter Collective, Scatterv Collective, Allgather Collective, Allgatherv Collective, Alltoall Collective,
    Alltoallv Collective,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_order_are_those_of_the_library() {
        let text = include_str!("../../../../native/mpi/functions.h");
        let operations = text.split("#define OPERATIONS").next().unwrap();
        let names =
            operations.split("DO(").skip(1).filter_map(|part| part.split_once(',')).map(|(name, _)| name);
        let names: Vec<&str> = names
            .filter(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_'))
            .collect();
        let ours: Vec<String> = MpiOperation::ALL.iter().map(|operation| operation.name()).collect();
        assert_eq!(ours, names);
    }
}
