//! URL forms: lake form, key form, SURT, registrable domain, keys and ids
