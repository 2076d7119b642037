//! The GGUF file format: a header, key-value pairs and tensors. Everything that a file claims about itself is checked.

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::CorruptModelFile;
use super::bytes::ModelFileReader;
use super::matrix::TensorFormat;

/// Real models have dozens of values and hundreds of tensors.
const MAX_ENTRIES: u64 = 20_000;
/// Maximum items of all lists together. One byte of a list takes eight in memory.
const MAX_LIST_ITEMS: u64 = 1 << 20;
/// Supported models have a few hundred megabytes. A larger file is a mistake.
const MAX_FILE_BYTES: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum GgufValue {
    Number(f64),
    Flag(bool),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<f64>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorInfo {
    pub format: TensorFormat,
    /// The innermost dimension comes first, as in the file.
    pub columns: usize,
    pub rows: usize,
    offset: u64,
}

pub(super) struct Gguf<R> {
    bytes: ModelFileReader<R>,
    values: HashMap<String, GgufValue>,
    tensors: HashMap<String, TensorInfo>,
    data: u64,
    /// Tensor bytes read so far.
    handed_out: u64,
}

impl<R: Read + Seek> Gguf<R> {
    pub fn open(file: R) -> Result<Self, CorruptModelFile> {
        let mut bytes = ModelFileReader::new(file)?;
        if bytes.remaining_bytes() > MAX_FILE_BYTES {
            return Err(CorruptModelFile::new("it is larger than any supported model"));
        }
        if bytes.read_array::<4>()? != *b"GGUF" {
            return Err(CorruptModelFile::new("it is not a GGUF file"));
        }
        let version = bytes.read_u32()?;
        if !(2..=3).contains(&version) {
            return Err(CorruptModelFile::new(format!(
                "its GGUF version is {version}; only 2 and 3 are supported"
            )));
        }
        let (tensors, values) = (read_count(&mut bytes)?, read_count(&mut bytes)?);
        let values = read_values(&mut bytes, values)?;
        let tensors = read_tensors(&mut bytes, tensors)?;
        let alignment = match values.get("general.alignment") {
            None => 32,
            Some(GgufValue::Number(number)) if [8.0, 16.0, 32.0, 64.0, 128.0, 256.0].contains(number) => {
                *number as u64
            }
            Some(_) => return Err(CorruptModelFile::new("its alignment is not a small power of two")),
        };
        let data = bytes.position().next_multiple_of(alignment);
        Ok(Self { bytes, values, tensors, data, handed_out: 0 })
    }

    pub fn find_value(&self, key: &str) -> Option<&GgufValue> {
        self.values.get(key)
    }

    pub fn text_value(&self, key: &str) -> Result<&str, CorruptModelFile> {
        match self.find_value(key) {
            Some(GgufValue::Text(text)) => Ok(text),
            _ => Err(CorruptModelFile::new(format!("it has no text value '{key}'"))),
        }
    }

    pub fn number_value(&self, key: &str) -> Result<f64, CorruptModelFile> {
        match self.find_value(key) {
            Some(GgufValue::Number(number)) => Ok(*number),
            _ => Err(CorruptModelFile::new(format!("it has no number '{key}'"))),
        }
    }

    pub fn size_value(&self, key: &str) -> Result<usize, CorruptModelFile> {
        let number = self.number_value(key)?;
        match number >= 1.0 && number <= f64::from(1 << 24) && number.fract() == 0.0 {
            true => Ok(number as usize),
            false => Err(CorruptModelFile::new(format!("'{key}' has the invalid value {number}"))),
        }
    }

    pub fn text_list(&self, key: &str) -> Result<&[String], CorruptModelFile> {
        match self.find_value(key) {
            Some(GgufValue::Texts(texts)) => Ok(texts),
            _ => Err(CorruptModelFile::new(format!("it has no list '{key}'"))),
        }
    }

    pub fn has_tensor(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns the raw bytes of a tensor with the expected shape.
    pub fn read_tensor(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<(TensorFormat, Vec<u8>), CorruptModelFile> {
        let Some(tensor) = self.tensors.get(name) else {
            return Err(CorruptModelFile::new(format!("it has no tensor '{name}'")));
        };
        if (tensor.rows, tensor.columns) != (rows, columns) {
            let found = format!("{} × {}", tensor.rows, tensor.columns);
            return Err(CorruptModelFile::new(format!("'{name}' is {found}, expected {rows} × {columns}")));
        }
        let (format, offset) = (tensor.format, tensor.offset);
        let size = format.byte_len(rows, columns).ok_or_else(|| odd_shape_error(name))?;
        let start = self.data.checked_add(offset).ok_or_else(|| odd_shape_error(name))?;
        // Overlapping tensors would turn a small file into a large model.
        self.handed_out = self.handed_out.saturating_add(size);
        if self.handed_out > self.bytes.len() {
            return Err(CorruptModelFile::new("its tensors overlap".to_owned()));
        }
        self.bytes.seek(start)?;
        Ok((format, self.bytes.read_bytes(size)?))
    }
}

fn odd_shape_error(name: &str) -> CorruptModelFile {
    CorruptModelFile::new(format!("the shape of '{name}' is not possible in its format"))
}

fn read_count<R: Read + Seek>(bytes: &mut ModelFileReader<R>) -> Result<u64, CorruptModelFile> {
    let count = bytes.read_u64()?;
    match count <= MAX_ENTRIES {
        true => Ok(count),
        false => Err(CorruptModelFile::new(format!("it declares {count} entries"))),
    }
}

fn read_values<R: Read + Seek>(
    bytes: &mut ModelFileReader<R>,
    count: u64,
) -> Result<HashMap<String, GgufValue>, CorruptModelFile> {
    let (mut values, mut room) = (HashMap::new(), MAX_LIST_ITEMS);
    for _ in 0..count {
        let key = bytes.read_text()?;
        let kind = bytes.read_u32()?;
        let value = read_value(bytes, kind, &mut room)?;
        values.insert(key, value);
    }
    Ok(values)
}

/// `room`: how many more items lists may have.
fn read_value<R: Read + Seek>(
    bytes: &mut ModelFileReader<R>,
    kind: u32,
    room: &mut u64,
) -> Result<GgufValue, CorruptModelFile> {
    Ok(match kind {
        7 => GgufValue::Flag(bytes.read_array::<1>()? != [0]),
        8 => GgufValue::Text(bytes.read_text()?),
        9 => read_list(bytes, room)?,
        _ => GgufValue::Number(read_number(bytes, kind)?),
    })
}

fn read_number<R: Read + Seek>(bytes: &mut ModelFileReader<R>, kind: u32) -> Result<f64, CorruptModelFile> {
    Ok(match kind {
        0 | 7 => bytes.read_array::<1>()?[0].into(),
        1 => i8::from_le_bytes(bytes.read_array()?).into(),
        2 => u16::from_le_bytes(bytes.read_array()?).into(),
        3 => i16::from_le_bytes(bytes.read_array()?).into(),
        4 => bytes.read_u32()?.into(),
        5 => i32::from_le_bytes(bytes.read_array()?).into(),
        6 => f32::from_le_bytes(bytes.read_array()?).into(),
        10 => bytes.read_u64()? as f64,
        11 => i64::from_le_bytes(bytes.read_array()?) as f64,
        12 => f64::from_le_bytes(bytes.read_array()?),
        _ => return Err(CorruptModelFile::new(format!("it contains a value of unknown type {kind}"))),
    })
}

fn read_list<R: Read + Seek>(
    bytes: &mut ModelFileReader<R>,
    room: &mut u64,
) -> Result<GgufValue, CorruptModelFile> {
    let (kind, items) = (bytes.read_u32()?, bytes.read_u64()?);
    // Every item takes at least one byte, so the rest of the file bounds the list.
    if items > *room || items > bytes.remaining_bytes() {
        return Err(CorruptModelFile::new(format!("a list of {items} items is declared")));
    }
    *room -= items;
    match kind {
        8 => (0..items).map(|_| bytes.read_text()).collect::<Result<_, _>>().map(GgufValue::Texts),
        // Nested lists would let a small file cause deep recursion.
        9 => Err(CorruptModelFile::new("it contains nested lists")),
        _ => (0..items).map(|_| read_number(bytes, kind)).collect::<Result<_, _>>().map(GgufValue::Numbers),
    }
}

fn read_tensors<R: Read + Seek>(
    bytes: &mut ModelFileReader<R>,
    count: u64,
) -> Result<HashMap<String, TensorInfo>, CorruptModelFile> {
    let mut tensors = HashMap::new();
    for _ in 0..count {
        let name = bytes.read_text()?;
        let dimensions = bytes.read_u32()?;
        if !(1..=4).contains(&dimensions) {
            return Err(CorruptModelFile::new(format!("'{name}' has {dimensions} dimensions")));
        }
        let sizes = (0..dimensions).map(|_| bytes.read_u64()).collect::<Result<Vec<_>, _>>()?;
        let format = TensorFormat::from_gguf(bytes.read_u32()?).map_err(|error| error.in_part(&name))?;
        let offset = bytes.read_u64()?;
        let rows = sizes[1..].iter().try_fold(1_u64, |product, size| product.checked_mul(*size));
        let rows = rows.and_then(|rows| usize::try_from(rows).ok()).ok_or_else(|| odd_shape_error(&name))?;
        let columns = usize::try_from(sizes[0]).map_err(|_| odd_shape_error(&name))?;
        if tensors.insert(name.clone(), TensorInfo { format, columns, rows, offset }).is_some() {
            return Err(CorruptModelFile::new(format!("it contains '{name}' twice")));
        }
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::synthetic::GgufBuilder;
    use super::*;

    #[test]
    fn total_gguf_list_items_are_limited() {
        let half = vec![vec![7]; 1 << 19];
        let open = |file: GgufBuilder| {
            Gguf::open(Cursor::new(file.into_bytes())).map(|_| ()).map_err(|e| e.to_string())
        };
        let two = || GgufBuilder::default().with_list("a", 0, &half).with_list("b", 0, &half);
        assert_eq!(open(two()), Ok(()));
        assert!(
            open(two().with_list("c", 0, &[vec![7]])).unwrap_err().contains("a list of 1 items is declared")
        );
    }
}
