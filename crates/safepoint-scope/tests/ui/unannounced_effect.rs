use safepoint_scope::{Effect, SafePoints, Scope};
struct Recorded;
struct Pay;
impl Effect for Pay { type Announcement = Recorded; }
fn main() { let (scope, _) = Scope::root(); let _ = scope.pass::<Pay>(SafePoints::ANY, &()); }
