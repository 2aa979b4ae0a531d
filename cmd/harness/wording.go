package main

import (
	"github.com/spf13/cobra"

	"sessiondate/domain"
)

// wordingFlags are the flags that say how the model is told.
type wordingFlags struct {
	language string
	noShell  bool
}

func (f *wordingFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.language, "lang", domain.Chinese.String(), "`language` of the texts about the date: zh-CN or en")
	cmd.Flags().BoolVar(&f.noShell, "no-shell", false, "the agent has no shell, and no text mentions one")
	complete(cmd, "lang", domain.Chinese.String(), domain.English.String())
}

func (f *wordingFlags) wording() (domain.Wording, error) {
	language, err := domain.ParseLanguage(f.language)
	if err != nil {
		return domain.Wording{}, usageError{err}
	}
	return domain.Wording{Language: language, NoShell: f.noShell}, nil
}

// complete tells the shell's completion which values a flag takes.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
