//! Task dependencies: a graph without cycles, all of whose nodes exist.

use std::collections::{BTreeMap, BTreeSet};

use super::{MAX_DEPENDENCIES, TaskNo, format_numbers};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDependency {
    #[error("dependsOn contains {list}, which does not exist", list = format_numbers(.0))]
    Unknown(Vec<TaskNo>),
    #[error("task {0} cannot depend on itself")]
    Itself(TaskNo),
    #[error("task {task} cannot depend on {needs}, which already depends on it")]
    Cycle { task: TaskNo, needs: TaskNo },
    #[error("{0} dependencies; at most {MAX_DEPENDENCIES} are allowed")]
    TooMany(usize),
}

impl InvalidDependency {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_dependency",
            Self::Itself(_) => "self_dependency",
            Self::Cycle { .. } => "dependency_cycle",
            Self::TooMany(_) => "invalid_task",
        }
    }
}

/// Checks whether `task` may depend on `needs`. `known` are all tasks with their dependencies.
pub fn check_dependencies(
    task: TaskNo,
    needs: &[TaskNo],
    known: &BTreeMap<TaskNo, Vec<TaskNo>>,
) -> Result<(), InvalidDependency> {
    if needs.len() > MAX_DEPENDENCIES {
        return Err(InvalidDependency::TooMany(needs.len()));
    }
    if needs.contains(&task) {
        return Err(InvalidDependency::Itself(task));
    }
    let unknown: Vec<TaskNo> = needs.iter().filter(|need| !known.contains_key(need)).copied().collect();
    if !unknown.is_empty() {
        return Err(InvalidDependency::Unknown(unknown));
    }
    match needs.iter().find(|need| depends_on(**need, task, known)) {
        Some(need) => Err(InvalidDependency::Cycle { task, needs: *need }),
        None => Ok(()),
    }
}

fn depends_on(from: TaskNo, to: TaskNo, known: &BTreeMap<TaskNo, Vec<TaskNo>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(task) = open.pop() {
        if task == to {
            return true;
        }
        if seen.insert(task) {
            open.extend(known.get(&task).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn graph(edges: &[(i64, &[i64])]) -> BTreeMap<TaskNo, Vec<TaskNo>> {
        let numbers = |list: &[i64]| list.iter().copied().map(TaskNo).collect();
        edges.iter().map(|(task, needs)| (TaskNo(*task), numbers(needs))).collect()
    }

    #[test]
    fn unknown_self_and_cyclic_dependencies_are_refused() {
        let known = graph(&[(1, &[]), (2, &[1]), (3, &[2])]);
        let check = |task, needs: &[i64]| {
            let needs: Vec<TaskNo> = needs.iter().copied().map(TaskNo).collect();
            check_dependencies(TaskNo(task), &needs, &known).map_err(|edge| edge.code())
        };
        assert_eq!(check(4, &[1, 3]), Ok(()));
        assert_eq!(check(4, &[9]), Err("unknown_dependency"));
        assert_eq!(check(4, &[4]), Err("self_dependency"));
        assert_eq!(check(1, &[3]), Err("dependency_cycle"));
        assert_eq!(check(1, &[2]), Err("dependency_cycle"));
        assert_eq!(check(3, &[1]), Ok(()));
        assert_eq!(check(4, &[1; 51]), Err("invalid_task"));
    }

    proptest! {
        /// Whatever dependencies are requested in whatever order, the accepted ones contain no cycle.
        #[test]
        fn accepted_dependencies_never_form_cycle(asked in prop::collection::vec((1i64..9, 1i64..9), 0..40)) {
            let mut known = graph(&[(1, &[]), (2, &[]), (3, &[]), (4, &[]), (5, &[]), (6, &[]), (7, &[]), (8, &[])]);
            for (task, need) in asked {
                if check_dependencies(TaskNo(task), &[TaskNo(need)], &known).is_ok() {
                    known.entry(TaskNo(task)).or_default().push(TaskNo(need));
                }
            }
            let mut done: BTreeSet<TaskNo> = BTreeSet::new();
            while let Some((task, _)) = known
                .iter()
                .find(|(task, needs)| !done.contains(task) && needs.iter().all(|need| done.contains(need)))
            {
                done.insert(*task);
            }
            prop_assert_eq!(done.len(), known.len());
        }
    }
}
