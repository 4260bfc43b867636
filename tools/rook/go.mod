module menagerie/tools/rook

go 1.26.0

require github.com/rook/rook v1.20.6 // indirect
