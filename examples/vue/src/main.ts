import { client, opened } from '@countersign/example-page/chat'
import '@countersign/example-page/chat.css'
import { ChatProvider } from '@countersign/vue'
import { createApp, h } from 'vue'
import App from './App.vue'

await opened()
createApp(() => h(ChatProvider, { client }, () => h(App))).mount('#root')
