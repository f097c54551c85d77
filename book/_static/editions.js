// What there is of the book beside its pages: (file, name). `make pdf` writes this anew.
const EDITIONS = [];
