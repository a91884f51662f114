import { useMessageIds as idsIn, useMessage as messageIn } from '@countersign/solid'
import { createSignal, onCleanup } from 'solid-js'
import { createComponent, For, insert, render, setAttribute, template } from 'solid-js/web'
import { openStore } from './floor.js'
import { openChat } from './ours.js'

const article = template('<article><p></p></article>')

/** What Solid's compiler makes of a row; it counts each time that its text is written. */
function row(id, text, drawn) {
  const element = article()
  setAttribute(element, 'data-message', id)
  insert(element.firstChild, () => {
    drawn(id)
    return text()
  })
  return element
}

function list(target, openIds, readText, drawn) {
  const rows = () => {
    const ids = openIds()
    return createComponent(For, {
      get each() {
        return ids()
      },
      children: (id) => row(id, readText(id), drawn),
    })
  }
  return render(() => createComponent(rows, {}), target)
}

/** A signal for what another store tells of. */
function signalOf(subscribe, read) {
  const [value, set] = createSignal(read())
  onCleanup(subscribe(() => set(() => read())))
  return value
}

function floor(target, setting, drawn) {
  const store = openStore(setting)
  const openIds = () => signalOf(store.subscribe, store.readIds)
  const readText = (id) => {
    const message = signalOf(
      (listener) => store.subscribeOne(id, listener),
      () => store.readOne(id),
    )
    return () => message().text
  }
  return { unmount: list(target, openIds, readText, drawn), play: store.play }
}

function ours(target, setting, drawn) {
  const { client, play } = openChat(setting)
  const within = { client }
  const openIds = () => idsIn(within)
  const readText = (id) => {
    const message = messageIn(id, within)
    return () => message()?.parts[0]?.text
  }
  return { unmount: list(target, openIds, readText, drawn), play }
}

export const pages = { floor, countersign: ours }
