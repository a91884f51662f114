import { flushSync, mount, unmount } from 'svelte'
import FloorList from './FloorList.svelte'
import { openStore } from './floor.js'
import OurList from './OurList.svelte'
import { openChat } from './ours.js'

function show(List, target, props) {
  const list = mount(List, { target, props })
  flushSync()
  return () => unmount(list)
}

function floor(target, setting, drawn) {
  const store = openStore(setting)
  return { unmount: show(FloorList, target, { store, drawn }), play: store.play }
}

function ours(target, setting, drawn) {
  const { client, play } = openChat(setting)
  return { unmount: show(OurList, target, { within: { client }, drawn }), play }
}

export const pages = { floor, countersign: ours }
