//! Vectors of memories, quantized to one signed byte per dimension. This loses less than a hundredth of what a model
//! can distinguish.

use polyclaw_domain::recall::MemorySeq;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// A unit vector in bytes: `value = scale * byte`.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedVector {
    pub scale: f32,
    pub values: Vec<i8>,
}

#[expect(clippy::cast_possible_truncation, reason = "the values are rounded into the range of a byte")]
pub fn quantize_vector(vector: &[f32]) -> QuantizedVector {
    let largest = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return QuantizedVector { scale: 0.0, values: vec![0; vector.len()] };
    }
    let scale = largest / 127.0;
    QuantizedVector { scale, values: vector.iter().map(|value| (value / scale).round() as i8).collect() }
}

/// A memory that waits for its vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingEmbedding {
    pub seq: MemorySeq,
    pub owner: i64,
    pub content: String,
    pub updated_at: Millis,
}

/// Lists memories without a vector, oldest first.
pub fn list_pending_embeddings(tx: &mut Tx<'_>, limit: usize) -> Result<Vec<PendingEmbedding>> {
    const SQL: &str = "SELECT m.seq, m.owner, m.content, m.updated_at FROM embedding_queue p
        JOIN memories m ON m.seq = p.memory ORDER BY p.memory LIMIT $1";
    tx.query(SQL, params![limit], |row| {
        Ok(PendingEmbedding {
            seq: row.int(0)?,
            owner: row.int(1)?,
            content: row.text(2)?,
            updated_at: row.time(3)?,
        })
    })
}

/// Queues the vectors of all other models to be computed again.
pub fn requeue_other_models(tx: &mut Tx<'_>, model: &str) -> Result<usize> {
    const SQL: &str =
        "INSERT OR IGNORE INTO embedding_queue (memory) SELECT memory FROM vectors WHERE model_id <> $1";
    tx.execute(SQL, params![model])
}

/// Stores a memory's vector, unless the memory was changed or deleted since it was read.
pub fn store_vector(
    tx: &mut Tx<'_>,
    of: &PendingEmbedding,
    model: &str,
    vector: &QuantizedVector,
) -> Result<bool> {
    const SQL: &str = "INSERT OR REPLACE INTO vectors (memory, owner, model_id, dim, embedding)
        SELECT seq, owner, $3, $4, $5 FROM memories WHERE seq = $1 AND updated_at = $2 AND content = $6";
    let mut bytes = vector.scale.to_le_bytes().to_vec();
    bytes.extend(vector.values.iter().map(|value| value.to_le_bytes()[0]));
    let values = params![of.seq, of.updated_at, model, vector.values.len(), bytes.as_slice(), &of.content];
    Ok(tx.execute(SQL, values)? > 0)
}

/// Scans the vectors of one model, newest memory first. `each` gets the memory's number, owner, scale and bytes.
pub fn scan_vectors(
    tx: &mut Tx<'_>,
    model: &str,
    dim: usize,
    limit: usize,
    mut each: impl FnMut(MemorySeq, i64, f32, &[u8]),
) -> Result<usize> {
    const SQL: &str = "SELECT memory, owner, embedding FROM vectors WHERE model_id = $1 AND dim = $2
        ORDER BY memory DESC LIMIT $3";
    let rows = tx.query(SQL, params![model, dim, limit], |row| {
        let (seq, owner) = (row.int(0)?, row.int(1)?);
        row.bytes(2, |bytes| {
            if let Some((scale, values)) = bytes.split_first_chunk::<4>() {
                each(seq, owner, f32::from_le_bytes(*scale), values);
            }
        })
    })?;
    Ok(rows.len())
}
