//! The four loops of STREAM, compiled for each kind of registers: the compiler chooses the instructions, as the rules of
//! STREAM want it.

use super::Vectors;

/// The registers for which the loops are compiled, as far as the CPU has them, widest first.
pub fn stream_versions() -> Vec<Vectors> {
    let mut versions = Vectors::available();
    // For its own target, the compiler uses vectors without being asked.
    if versions.len() > 1 {
        versions.retain(|vectors| *vectors != Vectors::Plain);
    }
    versions
}

/// A loop over slices, in versions for registers that the CPU may have.
macro_rules! versions {
    ($(#[$about:meta])* $name:ident($($slice:ident: $type:ty),*; $($scalar:ident: f64)?) $body:block) => {
        $(#[$about])*
        pub fn $name($($slice: $type,)* $($scalar: f64,)? vectors: Vectors) {
            #[inline(always)]
            fn body($($slice: $type,)* $($scalar: f64)?) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn wide($($slice: $type,)* $($scalar: f64)?) {
                    body($($slice,)* $($scalar)?);
                }
                #[target_feature(enable = "avx2")]
                fn half($($slice: $type,)* $($scalar: f64)?) {
                    body($($slice,)* $($scalar)?);
                }
                match vectors.checked() {
                    // SAFETY: the CPU has these instructions.
                    Vectors::Avx512 => return unsafe { wide($($slice,)* $($scalar)?) },
                    // SAFETY: as above.
                    Vectors::Avx2 => return unsafe { half($($slice,)* $($scalar)?) },
                    _ => {}
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = vectors;
            body($($slice,)* $($scalar)?);
        }
    };
}

versions! {
    /// `to = from`, element by element and not by a library's copy.
    stream_copy(to: &mut [f64], from: &[f64]; ) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
    }
}
versions! {
    /// `to = scalar * from`.
    stream_scale(to: &mut [f64], from: &[f64]; scalar: f64) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = scalar * *from;
        }
    }
}
versions! {
    /// `to = one + two`.
    stream_add(to: &mut [f64], one: &[f64], two: &[f64]; ) {
        for ((to, one), two) in to.iter_mut().zip(one).zip(two) {
            *to = *one + *two;
        }
    }
}
versions! {
    /// `to = one + scalar * two`.
    stream_triad(to: &mut [f64], one: &[f64], two: &[f64]; scalar: f64) {
        for ((to, one), two) in to.iter_mut().zip(one).zip(two) {
            *to = *one + scalar * *two;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loops_compute_what_they_say() {
        stream_versions().into_iter().for_each(compute);
    }

    fn compute(vectors: Vectors) {
        for length in [0, 1, 7, 1000] {
            let one: Vec<f64> = (0..length).map(f64::from).collect();
            let two: Vec<f64> = one.iter().map(|value| value * 10.0).collect();
            let mut to = vec![-1.0; one.len()];
            let all = |to: &[f64], factor: f64| to.iter().zip(&one).all(|(to, one)| *to == factor * one);
            stream_copy(&mut to, &one, vectors);
            assert!(all(&to, 1.0));
            stream_scale(&mut to, &one, 3.0, vectors);
            assert!(all(&to, 3.0));
            stream_add(&mut to, &one, &two, vectors);
            assert!(all(&to, 11.0));
            stream_triad(&mut to, &one, &two, 2.0, vectors);
            assert!(all(&to, 21.0));
        }
    }
}
