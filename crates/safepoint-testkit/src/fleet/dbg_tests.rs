#[test]
fn dbg() {
    let seed: u64 = std::env::var("SEED").unwrap().parse().unwrap();
    let to: u64 = std::env::var("TO").map_or(seed + 1, |t| t.parse().unwrap());
    let s = match std::env::var("SAB").as_deref() {
        Ok("epoch") => super::Sabotage::NoEpochCheck,
        Ok("margin") => super::Sabotage::NoMargin,
        _ => super::Sabotage::Nothing,
    };
    for seed in seed..to {
        let r = super::simulate(&super::FleetPlan::small().without(s), seed);
        if r.broken.is_some() || to == 1 {
            eprintln!("{seed} {:?}\n{}", r.broken, r.last.join("\n"));
        }
        if to == seed + 1 {
            eprintln!("{seed} {}", r.figures);
        }
    }
}
