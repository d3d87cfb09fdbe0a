//! Tables for people.

/// Lines of cells, each column as wide as its widest cell.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// All columns but the first are set to the right.
    numbers: bool,
}

impl Table {
    /// A table with these headings, all columns but the first set to the right.
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self { rows: vec![headings.map(str::to_owned).to_vec()], numbers: true }
    }

    /// A table without headings, all columns set to the left.
    pub fn to_the_left() -> Self {
        Self::default()
    }

    /// Adds a line.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The text, each line with its end.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell_width = |row: &Vec<String>, column: usize| {
            row.get(column).map_or(0, |cell| cell.chars().count())
        };
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().map(|row| cell_width(row, column)).max().unwrap_or(0))
            .collect();
        self.rows.iter().map(|row| line(row, &widths, self.numbers)).collect()
    }
}

fn line(row: &[String], widths: &[usize], numbers: bool) -> String {
    let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| {
        if numbers && column > 0 { format!("{cell:>width$}") } else { format!("{cell:width$}") }
    });
    let text = cells.collect::<Vec<_>>().join("  ");
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["name", "n"]);
        table.row(vec!["frames".to_owned(), "12".to_owned()]);
        table.row(vec!["x".to_owned()]);
        assert_eq!(table.text(), "name     n\nframes  12\nx\n");
        let mut table = Table::to_the_left();
        table.row(["a", "1", "one"].map(str::to_owned).to_vec());
        table.row(["bc", "20", "twenty"].map(str::to_owned).to_vec());
        assert_eq!(table.text(), "a   1   one\nbc  20  twenty\n");
    }
}
