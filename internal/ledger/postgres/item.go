package postgres

import (
	"strings"

	"likewise/internal/like"
)

// An item is stored as one text, collection/id. No collection has a slash, so that it
// cannot be mistaken for another one.

func itemText(item like.Item) string { return item.Collection + "/" + item.ID }

func itemTexts(items []like.Item) []string {
	texts := make([]string, len(items))
	for k, item := range items {
		texts[k] = itemText(item)
	}
	return texts
}

func itemOf(text string) like.Item {
	collection, id, _ := strings.Cut(text, "/")
	return like.Item{Collection: collection, ID: id}
}
