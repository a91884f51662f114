export function bundleForNode(
  entry: string,
  folder: string,
): Promise<{ readonly file: string; remove(): Promise<void> }>

export function bundleForPage(entry: string): Promise<string>
