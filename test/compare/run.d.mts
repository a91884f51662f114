/** The names of all cells: `column/row`. */
export const cells: readonly string[]
/** The words of the cells, by name. */
export function playCells(names: readonly string[]): Promise<ReadonlyMap<string, string>>
