import { useMessageIds as idsIn, useMessage as messageIn } from '@countersign/vue'
import { createApp, defineComponent, h, onUnmounted, shallowRef } from 'vue'
import { openStore } from './floor.js'
import { openChat } from './ours.js'

/** The same list and rows for both; only where they read from differs. */
function mount(target, openIds, openText, drawn) {
  const Row = defineComponent({
    props: ['id'],
    setup(props) {
      const text = openText(props.id)
      return () => {
        drawn(props.id)
        return h('article', { 'data-message': props.id }, [h('p', text())])
      }
    },
  })
  const app = createApp({
    setup() {
      const ids = openIds()
      return () => ids.value.map((id) => h(Row, { key: id, id }))
    },
  })
  app.mount(target)
  return () => app.unmount()
}

function refOf(subscribe, read) {
  const ref = shallowRef(read())
  onUnmounted(
    subscribe(() => {
      ref.value = read()
    }),
  )
  return ref
}

function floor(target, setting, drawn) {
  const store = openStore(setting)
  const openText = (id) => {
    const message = refOf(
      (listener) => store.subscribeOne(id, listener),
      () => store.readOne(id),
    )
    return () => message.value.text
  }
  return {
    unmount: mount(target, () => refOf(store.subscribe, store.readIds), openText, drawn),
    play: store.play,
  }
}

function ours(target, setting, drawn) {
  const { client, play } = openChat(setting)
  const within = { client }
  const openText = (id) => {
    const message = messageIn(id, within)
    return () => message.value?.parts[0]?.text
  }
  return { unmount: mount(target, () => idsIn(within), openText, drawn), play }
}

export const pages = { floor, countersign: ours }
