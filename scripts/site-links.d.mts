export function deadLinks(site: string): string[]
