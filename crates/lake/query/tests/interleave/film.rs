//! A writer's work, frame by frame.

use crate::acts::{Actor, Done, disk};
use crate::truth::{Moment, Shelf};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use trawl_io::fault::{FaultFs, Loss, Stepped};
use trawl_io::{Fs, Op};

/// Everything others could see of a writer's work, in order.
pub struct Film {
    pub frames: Vec<Arc<dyn Fs>>,
    /// What each frame says the lake is.
    pub moments: Vec<Moment>,
    pub shelf: Shelf,
    looks: Mutex<HashMap<(usize, bool, PathBuf), u64>>,
}

impl Film {
    /// Lets `act` work on a copy of `base`.
    pub fn of(base: &FaultFs, act: &dyn Fn(&Actor) -> Done) -> Self {
        let fs = base.reboot(Loss::None);
        let frames = Arc::new(Mutex::new(vec![fs.reboot(Loss::None)]));
        let (live, shots, changed) = (fs.clone(), frames.clone(), Mutex::new(false));
        let stepped = Stepped::new(move |op, _| {
            // The step before is done now; a file that is being written has no name that others look at.
            let visible = matches!(op, Op::Rename | Op::Remove);
            if std::mem::replace(&mut *changed.lock().unwrap(), visible) {
                shots.lock().unwrap().push(live.reboot(Loss::None));
            }
            live.shared()
        });
        act(&Actor::new(disk(Arc::new(stepped)), "w")).unwrap();
        let mut frames = std::mem::take(&mut *frames.lock().unwrap());
        frames.push(fs.reboot(Loss::None));
        let mut shelf = Shelf::default();
        let moments = frames.iter().map(|frame| shelf.moment(&disk(frame.shared()))).collect();
        let frames = frames.iter().map(FaultFs::shared).collect();
        Self { frames, moments, shelf, looks: Mutex::default() }
    }

    /// What a step of a reader finds in a frame, as a number.
    pub fn look(&self, frame: usize, op: Op, path: &Path) -> u64 {
        let key = (frame, op == Op::List, path.to_owned());
        let mut looks = self.looks.lock().unwrap();
        *looks.entry(key).or_insert_with(|| {
            let fs = &self.frames[frame];
            let mut hasher = DefaultHasher::new();
            if op == Op::List {
                fs.list(path)
                    .ok()
                    .map(|entries| entries.into_iter().map(|e| e.name).collect::<Vec<_>>())
                    .hash(&mut hasher);
            } else {
                fs.read(path, 1 << 30).ok().hash(&mut hasher);
            }
            hasher.finish()
        })
    }
}
