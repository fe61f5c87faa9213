package httpapi

import (
	_ "embed"
	"encoding/json"
	"net/http"

	"go.yaml.in/yaml/v3"
)

// The contracts, written by hand. Operators and clients read them; nothing here is
// generated from them.
var (
	//go:embed openapi.yaml
	publicDocument []byte
	//go:embed openapi-admin.yaml
	adminDocument []byte
)

// toJSON turns a YAML document into JSON.
func toJSON(document []byte) ([]byte, error) {
	var tree any
	if err := yaml.Unmarshal(document, &tree); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

func (a *api) openapi(x *exchange, r *http.Request) error {
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	x.Header().Set("Cache-Control", "public, max-age=300")
	return x.answer(a.document)
}
