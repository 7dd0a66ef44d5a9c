use safepoint_scope::{Scope, StopRequest};
fn main() { let (scope, _) = Scope::root(); scope.stop(StopRequest::now()); }
