//! The safetensors file format: a length, a JSON table of tensors and their bytes. Every entry is checked against the
//! file.

use std::collections::HashMap;
use std::io::{Read, Seek};

use serde::Deserialize;
use serde_json::Value;

use super::CorruptModelFile;
use super::bytes::ModelFileReader;
use super::matrix::{TensorFormat, decode_floats};

/// Real tables take some kilobytes.
const MAX_HEADER_BYTES: u64 = 1 << 22;
const MAX_FILE_BYTES: u64 = 1 << 30;

#[derive(Deserialize)]
struct TensorEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

pub(super) struct Safetensors<R> {
    bytes: ModelFileReader<R>,
    entries: HashMap<String, Value>,
    data: u64,
}

impl<R: Read + Seek> Safetensors<R> {
    pub fn open(file: R) -> Result<Self, CorruptModelFile> {
        let mut bytes = ModelFileReader::new(file)?;
        if bytes.remaining_bytes() > MAX_FILE_BYTES {
            return Err(CorruptModelFile::new("it is larger than any supported model"));
        }
        let size = bytes.read_u64()?;
        if size > MAX_HEADER_BYTES {
            return Err(CorruptModelFile::new(format!("its header is declared with {size} bytes")));
        }
        let table = bytes.read_bytes(size)?;
        let entries =
            serde_json::from_slice(&table).map_err(|_| CorruptModelFile::new("its header is not JSON"))?;
        let data = bytes.position();
        Ok(Self { bytes, entries, data })
    }

    /// Returns the numbers of a tensor with exactly this shape.
    pub fn read_floats(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, CorruptModelFile> {
        let entry = self
            .entries
            .get(name)
            .ok_or_else(|| CorruptModelFile::new(format!("it has no tensor '{name}'")))?;
        let entry = TensorEntry::deserialize(entry)
            .map_err(|_| CorruptModelFile::new(format!("'{name}' has an invalid description")))?;
        let format = match entry.dtype.as_str() {
            "F32" => TensorFormat::F32,
            "F16" => TensorFormat::F16,
            other => {
                return Err(CorruptModelFile::new(format!(
                    "'{name}' has type {other}; only F32 and F16 are supported"
                )));
            }
        };
        if entry.shape != shape {
            return Err(CorruptModelFile::new(format!(
                "'{name}' has the shape {:?}, expected {shape:?}",
                entry.shape
            )));
        }
        let count = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
        let size = count.and_then(|count| format.byte_len(1, count));
        let [start, end] = entry.data_offsets;
        let (Some(size), Some(start)) = (size, self.data.checked_add(start).filter(|_| start <= end)) else {
            return Err(CorruptModelFile::new(format!("the offsets of '{name}' are invalid")));
        };
        if end - entry.data_offsets[0] != size {
            return Err(CorruptModelFile::new(format!(
                "'{name}' has {} bytes, expected {size}",
                end - entry.data_offsets[0]
            )));
        }
        self.bytes.seek(start)?;
        Ok(decode_floats(format, &self.bytes.read_bytes(size)?))
    }
}
