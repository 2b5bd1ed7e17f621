/** A page of the documentation. `file` is its path relative to the project's root. */
export type Page = { readonly file: string; readonly text: string }

/** A piece of code: a whole fenced block, or the text between two backticks. `line` counts from 1. */
export type Code = { readonly language: string; readonly text: string; readonly line: number }

/** A link or an image. `target` is as written, such as `docs/kafka.md#rights`. `line` counts from 1. */
export type Link = { readonly target: string; readonly line: number }

const fence = /^( *)(`{3,})([^\n`]*)\n([\s\S]*?)^ *\2 *$/gm

/** Finds the fenced blocks of a page, without their indentation. */
export function blocksOf(text: string): Code[] {
  return [...text.matchAll(fence)].map(({ 1: indent = '', 3: language = '', 4: body = '', index }) => ({
    language: language.trim(),
    text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    line: lineOf(text, index) + 1,
  }))
}

/** Finds the code between single or double backticks, outside of fenced blocks. */
export function spansOf(text: string): Code[] {
  const prose = withoutBlocks(text)
  return [...prose.matchAll(/(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)/gs)].map(({ 2: code = '', index }) => ({
    language: '',
    text: code.replaceAll(/\s+/g, ' ').trim(),
    line: lineOf(prose, index),
  }))
}

/** Finds links and images, outside of code. */
export function linksOf(text: string): Link[] {
  const prose = withoutCode(text)
  const inline = [...prose.matchAll(/\]\(<?([^\s)>]+)>?(?:\s+"[^"]*")?\)/g)]
  const defined = [...prose.matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)]
  return [...inline, ...defined].map(({ 1: target = '', index }) => ({ target, line: lineOf(prose, index) }))
}

/** Returns the anchors of a page: the anchors that GitHub makes of headings, and the anchors in HTML. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of withoutBlocks(text).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = slugOf(heading)
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  for (const [, id = ''] of text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id)
  return anchors
}

/** Returns GitHub's anchor for a heading: letters, digits, `_` and `-` stay, and spaces become `-`. */
function slugOf(heading: string): string {
  return heading
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

function withoutBlocks(text: string): string {
  return text.replaceAll(fence, blank)
}

function withoutCode(text: string): string {
  return withoutBlocks(text).replaceAll(/(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)/gs, blank)
}

/** Replaces code by spaces. Line breaks stay, so that the text after the code keeps its line numbers. */
function blank(code: string): string {
  return code.replaceAll(/[^\n]/g, ' ')
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}
