//! A cure for one run: the table that `libnumaapply.so` reads, with the nodes of this run's plan.

use crate::{CommandRequest, Environment, Program};
use numakit_cure::{
    CoreOrder, Cure, CuredIdentity, CuredObject, FittedCure, FittedObject, FittedPolicy, NoOrder,
    ObjectPolicy, PageSize, PartsOver, ProgramFile, RunThreads,
};
use numakit_model::Plan;
use numakit_model::plan::Step;
use numakit_sys::apply_table::{
    ApplyOutcome, ApplyTable, MAX_BUILD_ID, MAX_MODULES, MAX_TABLE_OBJECTS, ObjectOutcome, TABLE_FRACTIONS,
    TableContent, TableIdentity, TableObject, TablePages, TablePolicy,
};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;

/// How many threads OpenMP makes.
const THREADS: &str = "OMP_NUM_THREADS";

/// A cure and the library that applies it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunCure {
    /// The cure.
    pub cure: Cure,
    /// The library.
    pub library: PathBuf,
}

/// What an object of a cure gets in this run, or why it gets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectState {
    /// It gets this, as soon as it is there.
    Planned(FittedPolicy),
    /// It does not fit this run.
    Refused(numakit_cure::NoFit),
    /// The table has no room for it.
    NoRoom,
}

impl RunCure {
    /// Gives threads that share data cores of one node: changes which core of the plan comes first. `None` if the cure has no such
    /// threads.
    pub(crate) fn order(
        &self,
        program: &Program,
        plan: &mut Plan,
        environment: &Environment,
    ) -> Option<Result<CoreOrder, NoOrder>> {
        let found = self.cure.order(&thread_nodes(&self.cure, plan, environment))?;
        let processes = plan.processes().count();
        let order = match found {
            _ if program.obstacle.is_some() => Err(NoOrder::Unbound),
            // A launcher starts the program, whose threads take the cores in their order all the same.
            _ if self.other_program(program).is_some_and(|other| other.file == self.cure.program.file) => {
                Err(NoOrder::OtherBuild)
            }
            _ if processes > 1 => Err(NoOrder::Processes(processes)),
            found => found,
        };
        if let Ok(CoreOrder { cores, .. }) = &order {
            let steps = std::mem::take(&mut plan.steps);
            let placed = (0..).zip(cores).map(|(thread, core)| Step { thread, ..steps[*core].clone() });
            plan.steps = placed.collect();
        }
        Some(order)
    }

    /// The program that runs, if it is not the one that was observed, or another build of it.
    fn other_program(&self, program: &Program) -> Option<ProgramFile> {
        let observed = &self.cure.program.build_id;
        let build_id = program.build_id.clone().filter(|found| !observed.is_empty() && found != observed)?;
        Some(ProgramFile { file: program.name().to_string_lossy().into_owned(), build_id })
    }
}

/// A cure that is applied to a run.
#[derive(Debug)]
pub struct AppliedCure {
    /// The cure.
    pub cure: Cure,
    /// The cores of threads that share data, or why they keep the order of their creation; `None` if there are none.
    pub order: Option<Result<CoreOrder, NoOrder>>,
    /// What each object of it gets.
    pub states: Vec<ObjectState>,
    /// The program that runs, if it is not the one that was observed, or another build of it.
    pub other_program: Option<ProgramFile>,
    table: ApplyTable,
    /// The places of the table's objects in the cure.
    places: Vec<usize>,
    modules: Vec<ProgramFile>,
}

/// What was done for an object of a cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedObject {
    /// What was counted; `None` if the object is not in the table.
    pub counted: Option<ObjectOutcome>,
    /// The file that the object belongs to, if it was not loaded.
    pub not_loaded: Option<ProgramFile>,
}

impl AppliedCure {
    /// The cure for this command. Its table is made now.
    pub(crate) fn new(
        run: &RunCure,
        request: &CommandRequest<'_>,
        environment: &Environment,
    ) -> io::Result<Self> {
        let CommandRequest { program, plan, options, order, .. } = request;
        let cure = &run.cure;
        let fitted = cure.fit(&thread_nodes(cure, plan, environment));
        let FittedCure { objects, refused } = fitted;
        let mut states: Vec<ObjectState> = vec![ObjectState::NoRoom; cure.objects.len()];
        refused.iter().for_each(|(place, why)| states[*place] = ObjectState::Refused(*why));
        let mut builder = TableBuilder::default();
        for FittedObject { place, policy } in objects {
            if builder.add(place, &cure.objects[place], &policy) {
                states[place] = ObjectState::Planned(policy);
            }
        }
        let TableBuilder { objects, places, modules, .. } = builder;
        let nodes: BTreeMap<u32, u32> = plan.steps.iter().rev().map(|step| (step.node, step.cpu)).collect();
        let table = ApplyTable::create(&TableContent {
            nodes: nodes.into_iter().collect(),
            modules: modules.iter().map(|file| bytes_of(&file.build_id)).collect(),
            objects,
            verbose: options.verbose,
        })?;
        let (other_program, order) = (run.other_program(program), order.cloned());
        Ok(Self { cure: cure.clone(), order, states, other_program, table, places, modules })
    }

    /// What the program needs in its environment.
    pub(crate) fn environment(&self) -> (&'static str, String) {
        self.table.environment()
    }

    /// What was done so far, and for each object of the cure.
    pub fn outcome(&self) -> (ApplyOutcome, Vec<AppliedObject>) {
        let outcome = self.table.outcome();
        let is_loaded = |file: &ProgramFile| {
            let at = self.modules.iter().position(|known| known.build_id == file.build_id);
            at.is_none_or(|at| outcome.loaded.get(at).copied().unwrap_or(false))
        };
        let not_loaded = |object: &CuredObject| {
            files_of(&object.identity).into_iter().find(|file| !is_loaded(file)).cloned()
        };
        let one = |(place, object): (usize, &CuredObject)| AppliedObject {
            counted: self.places.iter().position(|at| *at == place).map(|at| outcome.objects[at].clone()),
            not_loaded: not_loaded(object),
        };
        let objects = self.cure.objects.iter().enumerate().map(one).collect();
        (outcome, objects)
    }
}

/// The nodes of the program's threads: the first process of the plan is the program.
fn thread_nodes(cure: &Cure, plan: &Plan, environment: &Environment) -> RunThreads {
    let first = plan.processes().next().unwrap_or_default();
    let number =
        environment.get(THREADS).and_then(|text| text.to_str()?.split(',').next()?.trim().parse().ok());
    RunThreads {
        nodes: first.iter().map(|step| step.node).collect(),
        told: number.filter(|_| cure.threads.open_mp),
    }
}

/// The objects of a table while it is made.
#[derive(Default)]
struct TableBuilder {
    objects: Vec<TableObject>,
    places: Vec<usize>,
    modules: Vec<ProgramFile>,
    known: HashMap<String, u32>,
}

impl TableBuilder {
    /// Adds an object; false if there is no room for it.
    fn add(&mut self, place: usize, object: &CuredObject, policy: &FittedPolicy) -> bool {
        let files = files_of(&object.identity);
        let new = files.iter().filter(|file| !self.known.contains_key(&file.build_id)).count();
        if self.objects.len() >= MAX_TABLE_OBJECTS || self.modules.len() + new > MAX_MODULES {
            return false;
        }
        let identity = match &object.identity {
            CuredIdentity::Variable { module, address, bytes } => {
                TableIdentity::Variable { module: self.module(module), address: *address, bytes: *bytes }
            }
            CuredIdentity::Blocks { chain, count, smallest, largest, .. } => TableIdentity::Blocks {
                sizes: [*smallest, *largest],
                count: *count,
                chain: chain.iter().map(|call| (self.module(&call.module), call.address)).collect(),
            },
        };
        let (over_blocks, node) = match policy {
            FittedPolicy::Parts { over, node } => (*over == PartsOver::Blocks, **node),
            FittedPolicy::Same => (false, [None; TABLE_FRACTIONS]),
        };
        self.objects.push(TableObject {
            identity,
            policy: match object.policy {
                ObjectPolicy::Parts { .. } => TablePolicy::Parts,
                ObjectPolicy::Interleave => TablePolicy::Interleaved,
                ObjectPolicy::Weighted => TablePolicy::Weighted,
                ObjectPolicy::Near => TablePolicy::Near,
                ObjectPolicy::Padded => TablePolicy::Padded,
                ObjectPolicy::Unchanged => TablePolicy::Unchanged,
            },
            pages: match object.pages {
                PageSize::AsItIs => TablePages::AsTheyAre,
                PageSize::Huge => TablePages::Huge,
                PageSize::Small => TablePages::Small,
            },
            over_blocks,
            node,
        });
        self.places.push(place);
        true
    }

    fn module(&mut self, file: &ProgramFile) -> u32 {
        let modules = &mut self.modules;
        *self.known.entry(file.build_id.clone()).or_insert_with(|| {
            modules.push(file.clone());
            modules.len() as u32 - 1
        })
    }
}

/// The files by which an object is found.
fn files_of(identity: &CuredIdentity) -> Vec<&ProgramFile> {
    match identity {
        CuredIdentity::Variable { module, .. } => vec![module],
        CuredIdentity::Blocks { chain, .. } => chain.iter().map(|call| &call.module).collect(),
    }
}

/// The bytes of hexadecimal digits.
fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2).take(MAX_BUILD_ID);
    pairs.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunOptions;
    use numakit_cure::{CuredThreads, ObjectPart, ReturnAddress};
    use numakit_model::Topology;
    use numakit_model::plan::Memory;
    use numakit_sys::permissions::Permissions;
    use std::path::Path;

    fn file(name: &str, build_id: &str) -> ProgramFile {
        ProgramFile { file: name.to_owned(), build_id: build_id.to_owned() }
    }

    fn plan(nodes: &[u32]) -> Plan {
        let step = |(cpu, node): (u32, &u32)| Step {
            process: 0,
            thread: cpu,
            cpu,
            node: *node,
            memory: Memory::default(),
            because: String::new(),
        };
        Plan { steps: (0..).zip(nodes).map(step).collect(), ..Plan::default() }
    }

    fn cure(open_mp: bool) -> Cure {
        let part = |from, to, thread| ObjectPart { from, to, thread, samples: 9, sure: 1.0 };
        let call = |module: &ProgramFile, address| ReturnAddress {
            module: module.clone(),
            address,
            name: "f".to_owned(),
        };
        let (app, library) = (file("app", "0102"), file("lib.so", "ff"));
        let object = |identity, policy| CuredObject {
            name: "x".to_owned(),
            verdict: "first-touch".to_owned(),
            reason: String::new(),
            identity,
            policy,
            pages: PageSize::AsItIs,
        };
        let parts =
            ObjectPolicy::Parts { over: PartsOver::Block, parts: vec![part(0, 32, 0), part(32, 64, 1)] };
        let blocks = CuredIdentity::Blocks {
            by: "malloc".to_owned(),
            chain: vec![call(&library, 7), call(&app, 9)],
            count: 1,
            smallest: 10,
            largest: 20,
        };
        Cure {
            version: 1,
            program: app.clone(),
            threads: CuredThreads { working: vec![0, 1], count: 2, cpus: 2, open_mp },
            objects: vec![
                object(CuredIdentity::Variable { module: app, address: 0x40, bytes: 4 }, parts),
                object(blocks, ObjectPolicy::Near),
            ],
            ..Cure::default()
        }
    }

    fn applied(cure: &Cure, nodes: &[u32], environment: &[(&str, &str)]) -> AppliedCure {
        let program = Program::elsewhere("x".as_ref());
        let variables = environment.iter().map(|(name, value)| (name.into(), value.into()));
        let (mut plan, environment) = (plan(nodes), Environment::of(variables));
        let run = RunCure { cure: cure.clone(), library: PathBuf::new() };
        let order = run.order(&program, &mut plan, &environment);
        let request = CommandRequest {
            words: &[],
            program: &program,
            plan: &plan,
            is_crowded: false,
            topology: &Topology::default(),
            options: &RunOptions::default(),
            setting: None,
            permissions: &Permissions::default(),
            library: Path::new(""),
            lock_descriptor: None,
            order: order.as_ref(),
        };
        AppliedCure::new(&run, &request, &environment).unwrap()
    }

    fn nodes(state: &ObjectState) -> (Option<u32>, Option<u32>) {
        match state {
            ObjectState::Planned(FittedPolicy::Parts { node, .. }) => (node[0], node[63]),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn objects_get_the_nodes_of_the_plan() {
        let applied = applied(&cure(false), &[3, 1], &[]);
        assert_eq!(nodes(&applied.states[0]), (Some(3), Some(1)));
        assert_eq!(applied.states[1], ObjectState::Planned(FittedPolicy::Same));
        let (outcome, objects) = applied.outcome();
        assert_eq!((outcome.processes, outcome.loaded.len()), (0, 2));
        assert_eq!(objects[1].not_loaded.as_ref().map(|file| file.file.as_str()), Some("lib.so"));
        assert_eq!(objects[0].counted.as_ref().map(|counted| counted.applied), Some(0));
    }

    #[test]
    fn parts_are_where_threads_that_share_data_are() {
        let mut four = cure(false);
        four.threads = CuredThreads { working: vec![0, 1, 2, 3], count: 4, cpus: 4, open_mp: false };
        four.sharing =
            [[0, 2], [1, 3]].map(|threads| numakit_cure::SharingThreads { threads, share: 0.2 }).to_vec();
        let found = applied(&four, &[3, 3, 1, 1], &[]);
        assert_eq!(nodes(&found.states[0]), (Some(3), Some(1)));
        let order = found.order.unwrap().unwrap();
        assert_eq!((order.cores, order.before), (vec![0, 2, 1, 3], 0.0));
        let run = RunCure { cure: four.clone(), library: PathBuf::new() };
        let order = |program: &Program, plan: &mut Plan| {
            run.order(program, plan, &Environment::default()).unwrap().unwrap_err()
        };
        let mut program = Program::elsewhere(four.program.file.as_ref());
        let mut two = plan(&[3, 3, 1, 1]);
        two.steps[2..].iter_mut().for_each(|step| step.process = 1);
        assert_eq!(order(&program, &mut two), NoOrder::Processes(2));
        program.build_id = Some("99".to_owned());
        let launcher = Program { build_id: program.build_id.clone(), ..Program::elsewhere("sh".as_ref()) };
        let started = run.order(&launcher, &mut plan(&[3, 3, 1, 1]), &Environment::default());
        assert!(started.unwrap().is_ok(), "a launcher starts the program");
        assert_eq!(order(&program, &mut plan(&[3, 3, 1, 1])), NoOrder::OtherBuild);
        program.obstacle = Some(crate::Obstacle::Static);
        assert_eq!(order(&program, &mut plan(&[3, 3, 1, 1])), NoOrder::Unbound);
        assert_eq!(applied(&cure(false), &[3, 1], &[]).order, None);
    }

    #[test]
    fn the_number_of_threads_that_open_mp_is_told_counts() {
        let one = [("OMP_NUM_THREADS", "1")];
        assert_eq!(nodes(&applied(&cure(true), &[3, 1], &one).states[0]), (Some(3), Some(3)));
        assert_eq!(nodes(&applied(&cure(false), &[3, 1], &one).states[0]), (Some(3), Some(1)));
    }

    #[test]
    fn what_the_table_has_no_room_for_is_said() {
        let mut many = cure(false);
        many.objects = vec![many.objects[0].clone(); MAX_TABLE_OBJECTS + 1];
        let applied = applied(&many, &[3, 1], &[]);
        assert_eq!(applied.states[MAX_TABLE_OBJECTS], ObjectState::NoRoom);
        assert!(applied.outcome().1[MAX_TABLE_OBJECTS].counted.is_none());
        let mut files = cure(false);
        files.objects = (0..=MAX_MODULES as u64)
            .map(|n| CuredObject {
                identity: CuredIdentity::Variable {
                    module: file("a", &format!("{n:04x}")),
                    address: 0,
                    bytes: 1,
                },
                ..files.objects[0].clone()
            })
            .collect();
        let applied = self::applied(&files, &[3, 1], &[]);
        assert_eq!(applied.states[MAX_MODULES], ObjectState::NoRoom);
    }

    #[test]
    fn build_ids_are_bytes() {
        assert_eq!(bytes_of("0aff"), [10, 255]);
        assert_eq!(bytes_of(&"11".repeat(50)).len(), MAX_BUILD_ID);
    }
}
