// What there is of the book beside its pages: (file, name). `make editions` writes this anew.
const EDITIONS = [];
