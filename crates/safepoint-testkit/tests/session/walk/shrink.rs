//! Makes a failing list of steps short, by dropping as many of them as it goes without.

/// What is left when no step can be dropped without the failure going too.
pub(super) fn shrunk<S: Clone>(steps: &[S], fails: impl Fn(&[S]) -> bool) -> Vec<S> {
    let mut few = steps.to_vec();
    let mut size = few.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        let before = few.len();
        while from < few.len() {
            let to = (from + size).min(few.len());
            let fewer = [&few[..from], &few[to..]].concat();
            if fails(&fewer) { few = fewer } else { from = to }
        }
        if few.len() == before || size > 1 {
            size /= 2;
        }
    }
    few
}
