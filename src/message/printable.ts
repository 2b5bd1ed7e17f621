/**
 * Matches what a terminal or a browser obeys instead of showing it: control characters (C0 without tab and
 * line feed, DEL, C1), separators of lines and paragraphs, and marks that change the direction of the text.
 */
const obeyed =
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** Nearly no text has such a character, and this pattern is found out sooner than `obeyed`. */
const unusual = /[^\t\n\x20-\x7e]/

/**
 * Returns a text with `\uXXXX` in place of each character that could make a terminal or a viewer show
 * something else than what is there. Ids, names and answers come from strangers. JSON stays the same JSON.
 */
export function printable(text: string): string {
  if (!unusual.test(text)) return text
  return text.replace(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
