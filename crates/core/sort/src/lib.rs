//! External merge sort within a memory budget
