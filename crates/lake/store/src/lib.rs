//! Object store, layout, dataset registry, manifests
