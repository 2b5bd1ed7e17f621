/** Returns the names of the series in a PromQL query. */
export function namesIn(expr: string): string[] {
  const bare = expr.replaceAll(/"[^"]*"/g, '""').replaceAll(/\b(by|on|ignoring|without) *\([^)]*\)/g, '')
  return [...new Set([...bare.matchAll(/\b(?:sluice|process|nodejs)[_:][\w:]*/g)].map(([name]) => name))]
}

/** Returns the name of the series and the labels of each selector in a PromQL query. */
export function selectorsIn(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/([a-z][\w:]*)\{([^}]*)\}/g)].map(([, name = '', matchers = '']) => ({
    name,
    labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label = '']) => label),
  }))
}
