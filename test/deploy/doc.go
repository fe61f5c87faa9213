// Package deploy tests what people start first when they run several nodes: the
// examples, the Compose file and the image of deploy/, and the parts into which a
// service can be split. No container engine is needed: example files are started as
// they are, with real servers at other addresses, and what only an engine could run
// is compared with the program that it is for.
package deploy
