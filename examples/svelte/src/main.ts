import { opened } from '@countersign/example-page/chat'
import '@countersign/example-page/chat.css'
import { mount } from 'svelte'
import App from './App.svelte'

const target = document.getElementById('root')
if (!target) throw new Error('index.html has no element with the id "root".')
await opened()
mount(App, { target })
