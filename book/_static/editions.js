// What there is of the book beside its pages: (file, name). `make pdf` and `make epub` write this anew.
const EDITIONS = [];
