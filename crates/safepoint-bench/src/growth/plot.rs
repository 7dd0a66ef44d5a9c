//! A plot of points as SVG: axes from zero, a dot for each point, and the levels of the first and the last tenth.

use std::fmt;

pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    pub(super) points: &'a [(f64, f64)],
    /// What a step costs in the first tenth, and in the last.
    pub(super) ends: (f64, f64),
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Lines of the grid in each direction.
const LINES: u32 = 5;

impl Plot<'_> {
    /// The largest values of both axes, rounded up. A few points may be far above all others, and are drawn at the edge.
    fn most(&self) -> (f64, f64) {
        let x = self.points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
        let mut costs: Vec<f64> = self.points.iter().map(|(_, cost)| *cost).collect();
        costs.sort_by(f64::total_cmp);
        let high = costs.get(costs.len() * 98 / 100).copied().unwrap_or(1.0);
        (x, round_up(1.3 * high.max(self.ends.0).max(self.ends.1)))
    }
}

/// The next of 1, 2, 5, 10, 20 and so forth.
fn round_up(figure: f64) -> f64 {
    let unit = 10_f64.powf(figure.max(1e-6).log10().floor());
    [1.0, 2.0, 5.0].iter().map(|step| step * unit).find(|round| *round >= figure).unwrap_or(10.0 * unit)
}

/// A figure at an axis, without the digits that a division leaves behind.
fn label(figure: f64) -> String {
    let rounded = format!("{figure:.2}");
    rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for Plot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most_x, most_y) = self.most();
        let across = |x: f64| LEFT + x / most_x * (WIDTH - LEFT - RIGHT);
        let up = |y: f64| HEIGHT - BOTTOM - (y / most_y).min(1.0) * (HEIGHT - TOP - BOTTOM);
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>"
        )?;
        writeln!(f, "<text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>", self.title)?;
        for line in 0..=LINES {
            let share = f64::from(line) / f64::from(LINES);
            let (x, y) = (share * most_x, share * most_y);
            let (at_x, at_y) = (across(x), up(y));
            writeln!(f, "<path d=\"M{LEFT} {at_y:.1}H{right}\" stroke=\"#ddd\"/>")?;
            let (beside, below) = (LEFT - 6.0, floor + 18.0);
            writeln!(
                f,
                "<text x=\"{beside}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                at_y + 4.0,
                label(y)
            )?;
            writeln!(f, "<text x=\"{at_x:.1}\" y=\"{below}\" text-anchor=\"middle\">{x:.0}</text>")?;
        }
        let (middle, end) = (f64::midpoint(LEFT, right), HEIGHT - 12.0);
        writeln!(f, "<text x=\"{middle}\" y=\"{end}\" text-anchor=\"middle\">{}</text>", self.x)?;
        writeln!(
            f,
            "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            HEIGHT / 2.0,
            self.y
        )?;
        write!(f, "<path fill=\"none\" stroke=\"#27c\" stroke-width=\"3\" stroke-linecap=\"round\" d=\"")?;
        // A line without length, with round ends, is a dot.
        for (x, y) in self.points {
            write!(f, "M{:.1} {:.1}h0", across(*x), up(*y))?;
        }
        writeln!(f, "\"/>")?;
        let tenth = (right - LEFT) / 10.0;
        for (from, level) in [(LEFT, self.ends.0), (right - tenth, self.ends.1)] {
            let level = up(level);
            writeln!(f, "<path d=\"M{from:.1} {level:.1}h{tenth:.1}\" stroke=\"#d40\" stroke-width=\"2\"/>")?;
        }
        writeln!(f, "</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        assert!((round_up(13.0) - 20.0).abs() < 1e-9);
        assert!((round_up(0.7) - 1.0).abs() < 1e-9);
        assert!((round_up(60.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_label_is_as_short_as_its_figure() {
        assert_eq!([3.0 * 0.2, 0.25, 4.0, 400.0].map(label), ["0.6", "0.25", "4", "400"]);
    }

    #[test]
    fn a_plot_has_a_dot_for_each_point() {
        let points = [(0.0, 1.0), (5.0, 2.0), (10.0, 900.0)];
        let plot = Plot { title: "t", x: "x", y: "y", points: &points, ends: (1.0, 2.0) };
        let drawn = plot.to_string();
        assert_eq!(drawn.matches("h0").count(), points.len());
        assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n"), "{drawn}");
        assert!(!drawn.contains("NaN"), "{drawn}");
    }
}
