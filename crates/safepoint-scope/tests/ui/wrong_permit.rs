use safepoint_scope::{Effect, Permit, SafePoints, Scope};
struct Pay;
impl Effect for Pay { type Announcement = (); }
struct Read;
impl Effect for Read { type Announcement = (); }
fn pay(_: Permit<Pay>) {}
fn main() {
    let (scope, _) = Scope::root();
    if let Ok(permit) = scope.pass::<Read>(SafePoints::ANY, &()) { pay(permit) }
}
