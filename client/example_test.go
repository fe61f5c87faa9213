package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"likewise/client"
)

func Example() {
	server := newService()
	defer server.stop()

	likes, err := client.New(server.URL, client.Options{
		Token: func(context.Context) (string, error) { return "ada", nil },
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	post := client.Item{Collection: "posts", ID: "42"}
	for range 2 { // a repeat changes nothing
		outcome, err := likes.Like(ctx, post)
		fmt.Println(outcome.Liked, outcome.Count, err)
	}
	// Output:
	// true 1 <nil>
	// true 1 <nil>
}

func ExampleClient_Counts() {
	server := newService()
	defer server.stop()
	ctx, likes := context.Background(), server.as("ada")
	if _, err := likes.Like(ctx, client.Item{Collection: "posts", ID: "1"}); err != nil {
		panic(err)
	}

	page, err := likes.Counts(ctx, client.Item{Collection: "posts", ID: "1"}, client.Item{Collection: "games", ID: "7"})
	if err != nil {
		panic(err)
	}
	for _, c := range page {
		fmt.Println(c.Item, c.Display, c.LikedByMe)
	}
	// Output:
	// posts/1 1 true
	// games/7 0 false
}

func ExampleClient_Likers() {
	server := newService()
	defer server.stop()
	ctx, post := context.Background(), client.Item{Collection: "posts", ID: "42"}
	for _, user := range []string{"ada", "bob", "cleo"} {
		if _, err := server.as(user).Like(ctx, post); err != nil {
			panic(err)
		}
	}

	for liker, err := range server.as("").Likers(ctx, post) {
		if err != nil {
			panic(err)
		}
		fmt.Println(liker.User)
	}
	// Output:
	// cleo
	// bob
	// ada
}

func ExampleClient_Stream() {
	server := newService()
	defer server.stop()
	ctx, post := context.Background(), client.Item{Collection: "posts", ID: "42"}

	for count, err := range server.as("").Stream(ctx, []client.Item{post}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(count.Item, count.Display)
		if count.Count == 1 {
			break
		}
		if _, err := server.as("ada").Like(ctx, post); err != nil {
			panic(err)
		}
	}
	// Output:
	// posts/42 0
	// posts/42 1
}

func ExampleError() {
	server := newService()
	defer server.stop()

	_, err := server.as("").Like(context.Background(), client.Item{Collection: "posts", ID: "42"})
	if refused, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(refused.Status, refused.Code, refused.Temporary())
	}
	// Output: 401 missing_token false
}

func ExampleOptimistic() {
	now := time.Now()
	button := client.Optimistic{}.Load(client.Outcome{Count: 41})

	button = button.Want(true) // the tap shows at once
	fmt.Println(button.View())

	// The command is on its way; two others like the post meanwhile.
	button = button.Observe(client.Count{Count: 43, Version: 7}, now)
	fmt.Println(button.View())

	button = button.Answer(client.Outcome{Liked: true, Count: 44}, now)
	fmt.Println(button.View())
	// Output:
	// {true 42 true}
	// {true 42 true}
	// {true 44 false}
}
