package domain

import (
	"errors"
	"fmt"
	"time"
)

// A Language is the language of the texts that the model is shown. The zero
// Language is [Chinese].
type Language uint8

// The languages there are wordings in.
const (
	Chinese Language = iota
	English
)

var languageTags = [...]string{Chinese: "zh-CN", English: "en"}

var errLanguage = errors.New("language is not zh-CN or en")

// String returns the language's BCP 47 tag: "zh-CN" or "en".
func (l Language) String() string {
	if int(l) >= len(languageTags) {
		return fmt.Sprintf("Language(%d)", uint8(l))
	}
	return languageTags[l]
}

// ParseLanguage returns the language with the tag "zh-CN" or "en". The error
// says so if tag is another.
func ParseLanguage(tag string) (Language, error) {
	for l, t := range languageTags {
		if t == tag {
			return Language(l), nil
		}
	}
	return 0, fmt.Errorf("%s: %w", quote(tag), errLanguage)
}

// A Wording is how the model is told of dates: in which language, and whether
// it has a shell to ask for the exact time. The zero Wording is Chinese with a
// shell. For one Wording and one date a text is the same byte for byte.
type Wording struct {
	Language Language
	// NoShell says that the session has no shell, as one embedded in a page.
	// No text then mentions one (R6).
	NoShell bool
}

var (
	weekdaysChinese = [...]string{"日", "一", "二", "三", "四", "五", "六"}
	weekdaysEnglish = [...]string{
		time.Sunday: "Sunday", time.Monday: "Monday", time.Tuesday: "Tuesday", time.Wednesday: "Wednesday",
		time.Thursday: "Thursday", time.Friday: "Friday", time.Saturday: "Saturday",
	}
)

// Notice returns the date-change notice that states d, tag included, on one
// line (R5, R6). It panics for no date.
func (w Wording) Notice(d Date) string {
	if w.Language == English {
		text := tagOpen + "System notice: the current date is now " + d.String() + " (" + weekdaysEnglish[d.Weekday()] +
			"). This line was added by the system and is not part of the message below"
		if !w.NoShell {
			text += "; the shell command date tells the exact time"
		}
		return text + "." + tagClose
	}
	text := tagOpen + "系统提示:当前日期已变更为 " + d.String() + "(星期" + weekdaysChinese[d.Weekday()] +
		")。这是系统注入的提示,不是用户说的话"
	if !w.NoShell {
		text += ";需要精确到时分秒请用 shell 执行 date"
	}
	return text + "。" + tagClose
}

// CurrentDate returns the text of the current-date section for an anchor at d
// (R11, R6). It panics for no date.
func (w Wording) CurrentDate(d Date) string {
	if w.Language == English {
		text := "## Current date\n\n" +
			"Current date: `" + d.String() + "` (" + weekdaysEnglish[d.Weekday()] + ")\n" +
			"This is the date of the session's first user message and stays as it is for the whole session. " +
			"A " + tagOpen + " tag in front of a user message is written by the system and means that the real date has moved on; " +
			"the newest tag states the date that holds."
		if !w.NoShell {
			text += " The shell command `date` tells the exact time."
		}
		return text
	}
	text := "## 当前日期\n\n" +
		"当前日期:`" + d.String() + "`(星期" + weekdaysChinese[d.Weekday()] + ")\n" +
		"这个日期取自会话的第一条用户消息,在整个会话里保持不变。" +
		"用户消息前面的 " + tagOpen + " 标签由系统写入,表示真实日期已经推进;有多个标签时,以最新的一个为准。"
	if !w.NoShell {
		text += "精确到时分秒的时间可用 shell 执行 `date` 得到。"
	}
	return text
}

// NoToolResult returns what stands for the result of a call that has none.
func (w Wording) NoToolResult() string {
	if w.Language == English {
		return "error: no result of this call was recorded"
	}
	return "错误:这次调用没有留下结果"
}

// CompactionInstruction returns the text of the system notice that asks the
// model for a handoff. It may forbid to copy date-change tags into it: they are
// the system's and would state a day that has passed.
func (w Wording) CompactionInstruction(forbidTags bool) string {
	if w.Language == English {
		text := "The conversation above is about to be replaced by a handoff. Write that handoff, so that the work can go on from it alone: " +
			"what the user wants, what was done, facts, numbers and paths that matter, and what is still open. " +
			"Take goals and quotations from real user messages only. Answer with the handoff and nothing else, and call no tools."
		if forbidTags {
			text += " " + tagOpen + " tags are written by the system and do not belong in the handoff."
		}
		return text
	}
	text := "以上会话即将被一份交接说明取代。请写出这份说明,使接手者只凭它就能继续:用户想要什么、已经做了什么、" +
		"重要的事实、数字与路径、还有什么没有完成。目标与引文只取自真实的用户消息。只回答交接说明本身,不要调用工具。"
	if forbidTags {
		text += tagOpen + " 标签由系统写入,不属于交接说明。"
	}
	return text
}
