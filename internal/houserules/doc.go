// Package houserules holds the habits of this project as tests: which package may
// import which, what is not done here, and how long a thing may be. It has no code
// of its own. Each message says what to do instead; a rule that is wrong for a good
// reason is changed here, in the same review, and not worked around.
package houserules
