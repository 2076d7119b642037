//! The GGUF file format: a header, named values, named tensors. Everything a file says about itself is checked
//! against the file before it is believed.

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::Damaged;
use super::bytes::Bytes;
use super::matrix::Format;

/// Real models have some dozens of values and some hundreds of tensors.
const MOST_ENTRIES: u64 = 20_000;
/// Of all lists together: a byte of a list takes eight in memory.
const MOST_ITEMS: u64 = 1 << 20;
/// The engine reads models of a few hundred megabytes; a bigger file is a mistake.
const LARGEST_FILE: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Flag(bool),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<f64>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    pub format: Format,
    /// The innermost dimension first, as the format has it.
    pub columns: usize,
    pub rows: usize,
    offset: u64,
}

pub(super) struct Gguf<R> {
    bytes: Bytes<R>,
    values: HashMap<String, Value>,
    tensors: HashMap<String, Tensor>,
    data: u64,
    /// Bytes of tensors read so far.
    handed_out: u64,
}

impl<R: Read + Seek> Gguf<R> {
    pub fn open(file: R) -> Result<Self, Damaged> {
        let mut bytes = Bytes::new(file)?;
        if bytes.left() > LARGEST_FILE {
            return Err(Damaged::new("it is larger than any model this engine runs"));
        }
        if bytes.array::<4>()? != *b"GGUF" {
            return Err(Damaged::new("it is no GGUF file"));
        }
        let version = bytes.u32()?;
        if !(2..=3).contains(&version) {
            return Err(Damaged::new(format!("its GGUF version is {version}; 2 and 3 are read")));
        }
        let (tensors, values) = (count(&mut bytes)?, count(&mut bytes)?);
        let values = read_values(&mut bytes, values)?;
        let tensors = read_tensors(&mut bytes, tensors)?;
        let alignment = match values.get("general.alignment") {
            None => 32,
            Some(Value::Number(number)) if [8.0, 16.0, 32.0, 64.0, 128.0, 256.0].contains(number) => {
                *number as u64
            }
            Some(_) => return Err(Damaged::new("its alignment is not a small power of two")),
        };
        let data = bytes.at().next_multiple_of(alignment);
        Ok(Self { bytes, values, tensors, data, handed_out: 0 })
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    pub fn text(&self, key: &str) -> Result<&str, Damaged> {
        match self.value(key) {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(Damaged::new(format!("it lacks the text '{key}'"))),
        }
    }

    pub fn number(&self, key: &str) -> Result<f64, Damaged> {
        match self.value(key) {
            Some(Value::Number(number)) => Ok(*number),
            _ => Err(Damaged::new(format!("it lacks the number '{key}'"))),
        }
    }

    pub fn size(&self, key: &str) -> Result<usize, Damaged> {
        let number = self.number(key)?;
        match number >= 1.0 && number <= f64::from(1 << 24) && number.fract() == 0.0 {
            true => Ok(number as usize),
            false => Err(Damaged::new(format!("'{key}' is {number}"))),
        }
    }

    pub fn texts(&self, key: &str) -> Result<&[String], Damaged> {
        match self.value(key) {
            Some(Value::Texts(texts)) => Ok(texts),
            _ => Err(Damaged::new(format!("it lacks the list '{key}'"))),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The raw bytes of a tensor, if it has the expected shape.
    pub fn tensor(&mut self, name: &str, rows: usize, columns: usize) -> Result<(Format, Vec<u8>), Damaged> {
        let Some(tensor) = self.tensors.get(name) else {
            return Err(Damaged::new(format!("it lacks the tensor '{name}'")));
        };
        if (tensor.rows, tensor.columns) != (rows, columns) {
            let found = format!("{} × {}", tensor.rows, tensor.columns);
            return Err(Damaged::new(format!("'{name}' is {found}, not {rows} × {columns}")));
        }
        let (format, offset) = (tensor.format, tensor.offset);
        let size = format.bytes(rows, columns).ok_or_else(|| odd_shape(name))?;
        let start = self.data.checked_add(offset).ok_or_else(|| odd_shape(name))?;
        // Tensors that share their bytes would make a small file a large model.
        self.handed_out = self.handed_out.saturating_add(size);
        if self.handed_out > self.bytes.len() {
            return Err(Damaged::new("its tensors overlap".to_owned()));
        }
        self.bytes.seek(start)?;
        Ok((format, self.bytes.take(size)?))
    }
}

fn odd_shape(name: &str) -> Damaged {
    Damaged::new(format!("the shape of '{name}' is not one its format can have"))
}

fn count<R: Read + Seek>(bytes: &mut Bytes<R>) -> Result<u64, Damaged> {
    let count = bytes.u64()?;
    match count <= MOST_ENTRIES {
        true => Ok(count),
        false => Err(Damaged::new(format!("it announces {count} entries"))),
    }
}

fn read_values<R: Read + Seek>(bytes: &mut Bytes<R>, count: u64) -> Result<HashMap<String, Value>, Damaged> {
    let (mut values, mut room) = (HashMap::new(), MOST_ITEMS);
    for _ in 0..count {
        let key = bytes.text()?;
        let kind = bytes.u32()?;
        let value = read_value(bytes, kind, &mut room)?;
        values.insert(key, value);
    }
    Ok(values)
}

/// `room`: how many items lists may still have.
fn read_value<R: Read + Seek>(bytes: &mut Bytes<R>, kind: u32, room: &mut u64) -> Result<Value, Damaged> {
    Ok(match kind {
        7 => Value::Flag(bytes.array::<1>()? != [0]),
        8 => Value::Text(bytes.text()?),
        9 => read_list(bytes, room)?,
        _ => Value::Number(read_number(bytes, kind)?),
    })
}

fn read_number<R: Read + Seek>(bytes: &mut Bytes<R>, kind: u32) -> Result<f64, Damaged> {
    Ok(match kind {
        0 | 7 => bytes.array::<1>()?[0].into(),
        1 => i8::from_le_bytes(bytes.array()?).into(),
        2 => u16::from_le_bytes(bytes.array()?).into(),
        3 => i16::from_le_bytes(bytes.array()?).into(),
        4 => bytes.u32()?.into(),
        5 => i32::from_le_bytes(bytes.array()?).into(),
        6 => f32::from_le_bytes(bytes.array()?).into(),
        10 => bytes.u64()? as f64,
        11 => i64::from_le_bytes(bytes.array()?) as f64,
        12 => f64::from_le_bytes(bytes.array()?),
        _ => return Err(Damaged::new(format!("it holds a value of the unknown kind {kind}"))),
    })
}

fn read_list<R: Read + Seek>(bytes: &mut Bytes<R>, room: &mut u64) -> Result<Value, Damaged> {
    let (kind, items) = (bytes.u32()?, bytes.u64()?);
    // Every item takes at least a byte, so a list can not be longer than what is left of the file.
    if items > *room || items > bytes.left() {
        return Err(Damaged::new(format!("a list of {items} items is announced")));
    }
    *room -= items;
    match kind {
        8 => (0..items).map(|_| bytes.text()).collect::<Result<_, _>>().map(Value::Texts),
        // A list of lists would let a small file ask for a deep stack.
        9 => Err(Damaged::new("it holds a list of lists")),
        _ => (0..items).map(|_| read_number(bytes, kind)).collect::<Result<_, _>>().map(Value::Numbers),
    }
}

fn read_tensors<R: Read + Seek>(
    bytes: &mut Bytes<R>,
    count: u64,
) -> Result<HashMap<String, Tensor>, Damaged> {
    let mut tensors = HashMap::new();
    for _ in 0..count {
        let name = bytes.text()?;
        let dimensions = bytes.u32()?;
        if !(1..=4).contains(&dimensions) {
            return Err(Damaged::new(format!("'{name}' has {dimensions} dimensions")));
        }
        let sizes = (0..dimensions).map(|_| bytes.u64()).collect::<Result<Vec<_>, _>>()?;
        let format = Format::of_gguf(bytes.u32()?).map_err(|error| error.in_part(&name))?;
        let offset = bytes.u64()?;
        let rows = sizes[1..].iter().try_fold(1_u64, |product, size| product.checked_mul(*size));
        let rows = rows.and_then(|rows| usize::try_from(rows).ok()).ok_or_else(|| odd_shape(&name))?;
        let columns = usize::try_from(sizes[0]).map_err(|_| odd_shape(&name))?;
        if tensors.insert(name.clone(), Tensor { format, columns, rows, offset }).is_some() {
            return Err(Damaged::new(format!("it holds '{name}' twice")));
        }
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::synthetic::FileMaker;
    use super::*;

    #[test]
    fn all_lists_together_have_no_more_items_than_one_may_have() {
        let half = vec![vec![7]; 1 << 19];
        let open =
            |file: FileMaker| Gguf::open(Cursor::new(file.bytes())).map(|_| ()).map_err(|e| e.to_string());
        let two = || FileMaker::default().list("a", 0, &half).list("b", 0, &half);
        assert_eq!(open(two()), Ok(()));
        assert!(open(two().list("c", 0, &[vec![7]])).unwrap_err().contains("a list of 1 items is announced"));
    }
}
