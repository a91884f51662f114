import { mount } from 'svelte'
import Page from './Page.svelte'
import './parts/base.css'

const target = document.getElementById('root')
if (target) mount(Page, { target })
