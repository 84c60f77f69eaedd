import './styles/base.css'
import './styles/layout.css'
import './styles/controls.css'
import './styles/pages.css'
import './styles/keys.css'
import './styles/rules.css'
import './styles/playground.css'
import { render } from 'preact'
import { App } from './app.js'

const root = document.getElementById('app')
if (root !== null) render(<App />, root)
