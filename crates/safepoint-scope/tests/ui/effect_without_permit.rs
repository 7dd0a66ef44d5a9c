use safepoint_scope::{Effect, Permit, Scope};
struct Pay;
impl Effect for Pay { type Announcement = (); }
fn pay(_: Permit<Pay>) {}
fn main() { let (scope, _) = Scope::root(); pay(scope); }
