package analytics

import "encoding/json"

// Identify ties a user to traits.
type Identify struct {
	UserId       string                 // unique user ID; this or AnonymousId is required
	AnonymousId  string                 // ID while the user is unknown
	Traits       map[string]interface{} // traits of the user
	Context      map[string]interface{} // extra context; not attributes of the user
	Integrations map[string]interface{} // destinations by name, true or false; see [Client]
	Timestamp    string                 // ISO 8601, to import past data; empty: the time of the call
	MessageId    string                 // 100 characters at most; empty: a random one
}

// Track records an event.
type Track struct {
	UserId       string                 // this or AnonymousId is required
	AnonymousId  string                 // ID while the user is unknown
	Event        string                 // event name; required
	Properties   map[string]interface{} // event properties
	Context      map[string]interface{} // extra context; not attributes of the user
	Integrations map[string]interface{} // destinations by name, true or false; see [Client]
	Timestamp    string                 // ISO 8601, to import past data; empty: the time of the call
	MessageId    string                 // 100 characters at most; empty: a random one
}

// Page records the view of a web page.
type Page struct {
	UserId      string // user ID in your database; this or AnonymousId is required
	AnonymousId string // ID for a user who is not known
	Category    string // page category
	Name        string // page name

	// Traits of the page. They are sent as "properties". The keys url, title,
	// referrer and path have a fixed meaning, and other keys are allowed.
	Traits map[string]interface{}

	Context      map[string]interface{} // extra context; not attributes of the user
	Integrations map[string]interface{} // destinations by name, true or false; see [Client]
	Timestamp    string                 // ISO 8601, to import past data; empty: the time of the call
	MessageId    string                 // 100 characters at most; empty: a random one
}

// Screen records the view of an app's screen.
type Screen struct {
	UserId       string                 // this or AnonymousId is required
	AnonymousId  string                 // ID while the user is unknown
	Category     string                 // screen category
	Name         string                 // screen name
	Properties   map[string]interface{} // properties of the screen
	Context      map[string]interface{} // extra context; not attributes of the user
	Integrations map[string]interface{} // destinations by name, true or false; see [Client]
	Timestamp    string                 // ISO 8601, to import past data; empty: the time of the call
	MessageId    string                 // 100 characters at most; empty: a random one
}

// Group associates a user with a group.
type Group struct {
	UserId       string                 // user being associated; this or AnonymousId is required
	AnonymousId  string                 // ID while the user is unknown
	GroupId      string                 // group identifier; required
	Traits       map[string]interface{} // traits of the group
	Context      map[string]interface{} // extra context; not attributes of the user
	Integrations map[string]interface{} // destinations by name, true or false; see [Client]
	Timestamp    string                 // ISO 8601, to import past data; empty: the time of the call
	MessageId    string                 // 100 characters at most; empty: a random one
}

// Alias ties a new ID of a user to an old one.
type Alias struct {
	UserId       string                 // new ID in your database; required
	PreviousId   string                 // ID to alias from; required
	Context      map[string]interface{} // extra context; not attributes of the user
	Integrations map[string]interface{} // destinations by name, true or false; see [Client]
	Timestamp    string                 // ISO 8601, to import past data; empty: the time of the call
	MessageId    string                 // 100 characters at most; empty: a random one
}

// A Message is a call in the form in which it is sent. OnFailure gets the
// messages that could not be delivered, and [Client.Resend] queues a message
// again.
type Message struct {
	Type      string          // identify, track, page, screen, group or alias
	MessageId string          // the same over all attempts
	JSON      json.RawMessage // the whole message
}

// A call holds the fields of a message of any kind, before it is encoded. Empty
// fields aren't encoded.
type call struct {
	kind         string
	messageId    string
	timestamp    string
	userId       string
	anonymousId  string
	previousId   string
	groupId      string
	event        string
	category     string
	name         string
	traits       map[string]interface{}
	properties   map[string]interface{}
	context      map[string]interface{}
	integrations map[string]interface{}
}
