//! The safetensors file format: a length, a JSON table of tensors, their bytes. Every entry is checked against the
//! file before it is believed.

use std::collections::HashMap;
use std::io::{Read, Seek};

use serde::Deserialize;
use serde_json::Value;

use super::Damaged;
use super::bytes::Bytes;
use super::matrix::{Format, floats};

/// Real tables take some kilobytes.
const LONGEST_TABLE: u64 = 1 << 22;
const LARGEST_FILE: u64 = 1 << 30;

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

pub(super) struct Safetensors<R> {
    bytes: Bytes<R>,
    entries: HashMap<String, Value>,
    data: u64,
}

impl<R: Read + Seek> Safetensors<R> {
    pub fn open(file: R) -> Result<Self, Damaged> {
        let mut bytes = Bytes::new(file)?;
        if bytes.left() > LARGEST_FILE {
            return Err(Damaged::new("it is larger than any model this engine runs"));
        }
        let size = bytes.u64()?;
        if size > LONGEST_TABLE {
            return Err(Damaged::new(format!("its table is announced with {size} bytes")));
        }
        let table = bytes.take(size)?;
        let entries = serde_json::from_slice(&table).map_err(|_| Damaged::new("its table is not JSON"))?;
        let data = bytes.at();
        Ok(Self { bytes, entries, data })
    }

    /// The numbers of a tensor with exactly this shape.
    pub fn floats(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Damaged> {
        let entry =
            self.entries.get(name).ok_or_else(|| Damaged::new(format!("it lacks the tensor '{name}'")))?;
        let entry =
            Entry::deserialize(entry).map_err(|_| Damaged::new(format!("'{name}' is not described")))?;
        let format = match entry.dtype.as_str() {
            "F32" => Format::F32,
            "F16" => Format::F16,
            other => return Err(Damaged::new(format!("'{name}' holds {other}; F32 and F16 are read"))),
        };
        if entry.shape != shape {
            return Err(Damaged::new(format!("'{name}' has the shape {:?}, not {shape:?}", entry.shape)));
        }
        let count = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
        let size = count.and_then(|count| format.bytes(1, count));
        let [start, end] = entry.data_offsets;
        let (Some(size), Some(start)) = (size, self.data.checked_add(start).filter(|_| start <= end)) else {
            return Err(Damaged::new(format!("the place of '{name}' makes no sense")));
        };
        if end - entry.data_offsets[0] != size {
            return Err(Damaged::new(format!(
                "'{name}' has {} bytes, not {size}",
                end - entry.data_offsets[0]
            )));
        }
        self.bytes.seek(start)?;
        Ok(floats(format, &self.bytes.take(size)?))
    }
}
