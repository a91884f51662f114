import { ChatProvider } from '@countersign/vue'
import { createApp, h } from 'vue'
import Page from './Page.vue'
import './parts/base.css'
import { newClient } from './server.js'

const client = newClient()
createApp(() => h(ChatProvider, { client }, () => h(Page))).mount('#root')
