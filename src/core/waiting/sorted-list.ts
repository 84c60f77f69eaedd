interface Node<T> {
  item: T
  size: number
  left: Node<T> | undefined
  right: Node<T> | undefined
}

/** A sorted list with access by position: a weight-balanced tree. Every operation on one item takes O(log n) steps. */
export class SortedList<T> {
  readonly #compare: (one: T, other: T) => number
  #root: Node<T> | undefined

  /** `items` must be sorted. */
  constructor(compare: (one: T, other: T) => number, items: readonly T[] = []) {
    this.#compare = compare
    this.#root = built(items, 0, items.length)
  }

  get size(): number {
    return sizeOf(this.#root)
  }

  /** Inserts after equal items. */
  insert(item: T): void {
    this.#root = inserted(this.#root, item, this.#compare)
  }

  at(position: number): T | undefined {
    let node = this.#root
    let left = position
    while (node !== undefined) {
      const before = sizeOf(node.left)
      if (left === before) return node.item
      if (left < before) node = node.left
      else {
        left -= before + 1
        node = node.right
      }
    }
    return undefined
  }

  /** The number of items that are less than this one. */
  positionOf(item: T): number {
    let position = 0
    for (let node = this.#root; node !== undefined; ) {
      if (this.#compare(node.item, item) < 0) {
        position += sizeOf(node.left) + 1
        node = node.right
      } else node = node.left
    }
    return position
  }

  removeAt(position: number): T | undefined {
    const item = this.at(position)
    if (position >= 0 && position < this.size) this.#root = without(this.#root as Node<T>, position)
    return item
  }

  toArray(): T[] {
    const items: T[] = []
    collect(this.#root, items)
    return items
  }
}

const sizeOf = (node: Node<unknown> | undefined): number => (node === undefined ? 0 : node.size)

function built<T>(items: readonly T[], from: number, to: number): Node<T> | undefined {
  if (from === to) return undefined
  const middle = (from + to) >>> 1
  const left = built(items, from, middle)
  return { item: items[middle] as T, size: to - from, left, right: built(items, middle + 1, to) }
}

function collect<T>(node: Node<T> | undefined, items: T[]): void {
  if (node === undefined) return
  collect(node.left, items)
  items.push(node.item)
  collect(node.right, items)
}

function inserted<T>(node: Node<T> | undefined, item: T, compare: (one: T, other: T) => number): Node<T> {
  if (node === undefined) return { item, size: 1, left: undefined, right: undefined }
  if (compare(item, node.item) < 0) node.left = inserted(node.left, item, compare)
  else node.right = inserted(node.right, item, compare)
  return balanced(node)
}

function without<T>(node: Node<T>, position: number): Node<T> | undefined {
  const before = sizeOf(node.left)
  if (position < before) node.left = without(node.left as Node<T>, position)
  else if (position > before) node.right = without(node.right as Node<T>, position - before - 1)
  else if (node.left === undefined) return node.right
  else if (node.right === undefined) return node.left
  else {
    let next = node.right
    while (next.left !== undefined) next = next.left
    node.item = next.item
    node.right = without(node.right, 0)
  }
  return balanced(node)
}

/** Parameters of Hirai and Yamamoto, "Balancing weight-balanced trees" (2011): the height stays below 2.5 log2(n). */
const heaviest = 3
const single = 2
const weightOf = (node: Node<unknown> | undefined): number => sizeOf(node) + 1

function balanced<T>(node: Node<T>): Node<T> {
  const { left, right } = node
  if (right !== undefined && weightOf(right) > heaviest * weightOf(left)) {
    if (weightOf(right.left) >= single * weightOf(right.right)) node.right = rotatedRight(right)
    return rotatedLeft(node)
  }
  if (left !== undefined && weightOf(left) > heaviest * weightOf(right)) {
    if (weightOf(left.right) >= single * weightOf(left.left)) node.left = rotatedLeft(left)
    return rotatedRight(node)
  }
  return counted(node)
}

function rotatedLeft<T>(node: Node<T>): Node<T> {
  const top = node.right as Node<T>
  node.right = top.left
  top.left = counted(node)
  return counted(top)
}

function rotatedRight<T>(node: Node<T>): Node<T> {
  const top = node.left as Node<T>
  node.left = top.right
  top.right = counted(node)
  return counted(top)
}

function counted<T>(node: Node<T>): Node<T> {
  node.size = sizeOf(node.left) + sizeOf(node.right) + 1
  return node
}
