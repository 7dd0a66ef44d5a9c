//! Every state of two nodes and two sessions.

use std::collections::{HashSet, VecDeque};

use super::model::{LeaseModel, LeaseRules, MARGIN, RULES};

/// Visits every state; how many there are, or the first promise that is broken and the steps that lead there.
fn explore(rules: LeaseRules) -> Result<usize, String> {
    let first = LeaseModel::new();
    let mut seen = HashSet::from([first.number()]);
    // Of each state how it was reached, to say so.
    let mut reached = vec![(first, None, usize::MAX)];
    let mut next = VecDeque::from([0]);
    while let Some(at) = next.pop_front() {
        let state = reached[at].0;
        for step in state.steps(rules) {
            match state.after(step, rules) {
                Ok(after) => {
                    if seen.insert(after.number()) {
                        next.push_back(reached.len());
                        reached.push((after, Some(step), at));
                    }
                }
                Err(broken) => {
                    let mut steps = vec![format!("{step:?}")];
                    let mut back = at;
                    while let Some((_, Some(step), before)) = reached.get(back) {
                        steps.push(format!("{step:?}"));
                        back = *before;
                    }
                    steps.reverse();
                    return Err(format!("{broken}: {}", steps.join(", ")));
                }
            }
        }
    }
    Ok(seen.len())
}

fn broken(rules: LeaseRules) -> String {
    explore(rules).expect_err("a rule is missing")
}

/// S7.64, S7.13, S7.14: in every state one owner writes and no two effects of a session are alive.
#[test]
fn no_order_of_events_gives_a_session_two_owners() {
    // A model in which less can happen than was meant has fewer.
    assert_eq!(explore(RULES), Ok(508_945));
}

/// S7.64: each rule is needed.
#[test]
fn each_rule_of_leases_is_needed() {
    for margin in 0..MARGIN {
        let broken = broken(LeaseRules { margin, ..RULES });
        assert!(broken.starts_with("a session has an owner"), "{broken}");
    }
    for rules in [LeaseRules { checks_epoch: false, ..RULES }, LeaseRules { checks_holder: false, ..RULES }] {
        let broken = broken(rules);
        assert!(broken.starts_with("one that is not the owner writes"), "{broken}");
    }
    let broken = broken(LeaseRules { checks_lease: false, ..RULES });
    assert!(broken.contains("alive"), "{broken}");
}
