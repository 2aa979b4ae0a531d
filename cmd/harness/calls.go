package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"sessiondate/domain"
)

// showCalls prints the session's calls, oldest first.
func (c *chat) showCalls(ctx context.Context) error {
	calls, err := c.store.Calls(ctx, c.session)
	if err != nil {
		return err
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"at", "for", "prompt tokens", "cached", "", "written", "units repeated", "changed sections", "cache miss"})
	for _, call := range calls {
		u := call.Usage
		repeated := fmt.Sprintf("%d of %d", call.Comparison.RepeatedUnits, call.Comparison.PreviousUnits)
		if call.Failed {
			repeated = "failed"
		}
		t.AppendRow(table.Row{
			call.At, call.Purpose, spellCount(u.Input), spellCount(u.CacheRead), share(u), spellCount(u.CacheWrite),
			repeated, strings.Join(call.Comparison.ChangedSections, ", "), call.CacheMiss,
		})
	}
	var configs []table.ColumnConfig
	for _, n := range []int{3, 4, 5, 6, 7} {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	_, err = fmt.Fprintln(c.out, t.Render())
	return err
}

// spellCount spells a count, and one that was not reported as a dash.
func spellCount(c domain.TokenCount) string {
	if !c.Reported {
		return "-"
	}
	return strconv.FormatInt(c.Tokens, 10)
}

// share spells how much of a prompt came from the cache.
func share(u domain.Usage) string {
	if !u.Input.Reported || !u.CacheRead.Reported || u.Input.Tokens == 0 {
		return ""
	}
	return strconv.FormatInt(100*u.CacheRead.Tokens/u.Input.Tokens, 10) + " %"
}
