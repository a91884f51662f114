interface Search {
  readonly options: object
  readonly searchOptions: object
}

interface Section {
  readonly id: string
  readonly title: string
  readonly titles: readonly string[]
  readonly text: string
}

declare const index: unique symbol
interface Index {
  readonly [index]: true
}

interface Task {
  readonly words: string
  readonly pages: readonly string[]
}

export declare const tasks: readonly Task[]
export declare function indexOf(sections: readonly Section[], search: Search): Index
export declare function loadIndex(json: string, search: Search): Index
export declare function firstThree(index: Index, words: string, search: Search): readonly string[]
export declare function missedTasks(of: readonly Task[], index: Index, search: Search): readonly string[]
