//! Writes the file, and damages it on request.

use super::{Export, Row, Schema, row};
use crate::export::schema::{Column, Table};
use rusqlite::{Connection, params_from_iter, types::Value};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

impl Export {
    /// Creates the tables that have no rows too, as `--lazy=false` does.
    pub fn all_tables(&mut self) -> &mut Self {
        self.all_tables = true;
        self
    }

    /// The rows of each table in reverse order. It has all tables.
    pub fn rows_backwards(&self) -> Self {
        let mut turned = self.clone();
        for table in self.schema.tables().filter(|t| t.key.is_empty()) {
            let name = table.name;
            turned.sql(format!(
                "CREATE TEMP TABLE aside AS SELECT * FROM {name} ORDER BY rowid DESC; DELETE FROM {name};
                 INSERT INTO {name} SELECT * FROM aside; DROP TABLE aside;"
            ));
        }
        turned.all_tables();
        turned
    }

    pub fn drop_table(&mut self, table: &str) -> &mut Self {
        self.sql(format!("DROP TABLE IF EXISTS \"{table}\""))
    }

    pub fn drop_column(&mut self, table: &str, column: &str) -> &mut Self {
        self.sql(format!("ALTER TABLE \"{table}\" DROP COLUMN \"{column}\""))
    }

    /// Sets a column to NULL in the rows that match, also where nsys declares it NOT NULL.
    pub fn null(&mut self, table: &str, column: &str, condition: &str) -> &mut Self {
        self.nullable.insert(table.to_owned());
        self.sql(format!("UPDATE \"{table}\" SET \"{column}\" = NULL WHERE {condition}"))
    }

    pub fn set(&mut self, table: &str, column: &str, value: i64, condition: &str) -> &mut Self {
        self.sql(format!("UPDATE \"{table}\" SET \"{column}\" = {value} WHERE {condition}"))
    }

    /// Stores any bytes as TEXT in the rows that match: invalid UTF-8, NUL bytes, control sequences.
    pub fn set_text(&mut self, table: &str, column: &str, bytes: &[u8], condition: &str) -> &mut Self {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.sql(format!("UPDATE \"{table}\" SET \"{column}\" = CAST(x'{hex}' AS TEXT) WHERE {condition}"))
    }

    pub fn write_temp(&self) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("profile.sqlite");
        self.write(&path);
        (folder, path)
    }

    pub fn write(&self, path: &Path) {
        let mut complete = self.clone();
        complete.gpu_rows();
        complete.fixed_rows();
        let mut db = Connection::open(path).expect("a new database");
        complete.fill(&mut db).expect("rows that fit their tables");
        for statement in &self.sql {
            db.execute_batch(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    fn fill(&self, db: &mut Connection) -> rusqlite::Result<()> {
        db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
        let transaction = db.transaction()?;
        for table in self.schema.tables() {
            let mut rows = self.rows.get(table.name).map_or(&[][..], Vec::as_slice).to_vec();
            if rows.is_empty() && !self.all_tables && !table.always {
                continue;
            }
            // 2026 exports in parallel and promises no order.
            if self.schema >= Schema::V2026_2 {
                shuffle(&mut rows);
            }
            let columns = table.columns(self.schema);
            transaction.execute_batch(&self.declaration(table, &columns))?;
            insert(&transaction, table, &columns, &rows)?;
        }
        transaction.commit()
    }

    fn declaration(&self, table: &Table, columns: &[Column]) -> String {
        let strict = !self.nullable.contains(table.name);
        let mut parts: Vec<String> = columns
            .iter()
            .map(|c| {
                format!("\"{}\" {}{}", c.name, c.kind, if c.not_null && strict { " NOT NULL" } else { "" })
            })
            .collect();
        if !table.key.is_empty() {
            parts.push(format!("PRIMARY KEY ({})", table.key));
        }
        format!("CREATE TABLE \"{}\" ({})", table.name, parts.join(", "))
    }

    /// Strings and enumerations, which are known only now or always the same.
    fn fixed_rows(&mut self) {
        let strings = self.strings.iter().enumerate();
        let strings = strings.map(|(i, value)| row! { id: i as i64 + 1, value: value.clone() }).collect();
        self.rows.insert("StringIds", strings);
        for (table, labels) in [
            ("ENUM_NSYS_EVENT_CLASS", &[(0, "CUDA runtime"), (1, "CUDA driver"), (67, "CUDA backtrace")][..]),
            (
                "ENUM_CUPTI_SYNC_TYPE",
                &[
                    (0, "Unknown"),
                    (1, "Event sync"),
                    (2, "Stream wait sync"),
                    (3, "Stream sync"),
                    (4, "Context sync"),
                ],
            ),
        ] {
            let rows = labels.iter().map(|&(id, label)| row! { id: id, label: label.to_owned() }).collect();
            self.rows.insert(table, rows);
        }
    }
}

fn insert(db: &Connection, table: &Table, columns: &[Column], rows: &[Row]) -> rusqlite::Result<()> {
    let marks = vec!["?"; columns.len()].join(", ");
    let mut statement = db.prepare(&format!("INSERT INTO \"{}\" VALUES ({marks})", table.name))?;
    for row in rows {
        statement.execute(params_from_iter(columns.iter().map(|column| value(column, row))))?;
    }
    Ok(())
}

/// The row's value for a column; a missing value is 0 or empty where NULL is not allowed.
fn value(column: &Column, row: &Row) -> Value {
    match row.iter().rev().find(|(name, _)| *name == column.name) {
        Some((_, value)) => value.clone(),
        None if !column.not_null => Value::Null,
        None if column.kind == "TEXT" => Value::Text("[]".to_owned()),
        None => Value::Integer(0),
    }
}

/// A fixed permutation (multiplicative congruential generator), so that a failing test fails again.
fn shuffle(rows: &mut [Row]) {
    let mut state: u64 = 0x2545_F491_4F6C_DD1D;
    for i in (1..rows.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        rows.swap(i, (state >> 33) as usize % (i + 1));
    }
}
