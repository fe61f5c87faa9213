package demo

import (
	"strconv"

	"likewise/internal/like"
)

// Post is one post of the demo's feed.
type Post struct {
	Collection string `json:"collection"`
	ID         string `json:"id"`
	Title      string `json:"title"`
	Text       string `json:"text"`
	Author     string `json:"author"`
	Emoji      string `json:"emoji"`
}

// feed is what the page shows; the first is the one that goes viral.
var feed = numbered([]Post{
	{Title: "The cat that learned to open the fridge", Text: "We changed the lock. She changed her approach. It took her nine minutes, and there is footage.", Author: "The Fridge Desk", Emoji: "🐈"},
	{Title: "Aurora over the harbour last night", Text: "Forty seconds of exposure, one thermos of tea, no regrets.", Author: "Harbour Lights", Emoji: "🌌"},
	{Title: "I finally beat the last level", Text: "After 214 tries. My neighbours know.", Author: "Level 99", Emoji: "🎮"},
	{Title: "Sourdough, week nine", Text: "It rose. It actually rose.", Author: "Flour and Water", Emoji: "🍞"},
	{Title: "Our tiny bookshop turned ten", Text: "Thank you for every rainy afternoon you spent between the shelves.", Author: "The Tiny Bookshop", Emoji: "📚"},
	{Title: "Sunrise run: 21 km before breakfast", Text: "The fog was worth the alarm clock.", Author: "Early Miles", Emoji: "🏃"},
	{Title: "Repaired a radio from 1954", Text: "One capacitor, two evenings, and suddenly: jazz.", Author: "Old Radios", Emoji: "📻"},
	{Title: "First tomatoes of the year", Text: "Three of them. They have names.", Author: "Balcony Garden", Emoji: "🍅"},
	{Title: "A train journey without wifi", Text: "Recommended. I counted herons.", Author: "Slow Trains", Emoji: "🚆"},
	{Title: "My daughter’s drawing of our dog", Text: "He has six legs because he is fast.", Author: "Kitchen Gallery", Emoji: "🐕"},
	{Title: "Snow in April, again", Text: "The tulips are not amused.", Author: "Weather Notes", Emoji: "🌷"},
	{Title: "Chess in the park, every Thursday", Text: "All levels. Bring a jumper.", Author: "Park Chess", Emoji: "♟️"},
})

func numbered(posts []Post) []Post {
	for i := range posts {
		item := postItem(i)
		posts[i].Collection, posts[i].ID = item.Collection, item.ID
	}
	return posts
}

// postItem is the post of a rank; those behind the feed are liked, but not shown.
func postItem(rank int) like.Item {
	return like.Item{Collection: "posts", ID: strconv.Itoa(rank + 1)}
}
