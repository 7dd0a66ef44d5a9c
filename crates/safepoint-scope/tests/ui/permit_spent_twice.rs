use safepoint_scope::{Effect, Permit, SafePoints, Scope};
struct Pay;
impl Effect for Pay { type Announcement = (); }
fn pay(_: Permit<Pay>) {}
fn main() {
    let (scope, _) = Scope::root();
    let Ok(permit) = scope.pass::<Pay>(SafePoints::ANY, &()) else { return };
    pay(permit);
    pay(permit);
}
